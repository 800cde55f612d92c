"""``allocate runs``: look at stored runs, and put them right."""

from __future__ import annotations

import typer

from teamalloc.cli.runs import edit, export, look

HELP = """Look at stored runs, and put them right.

\b
Examples:
  allocate runs                          the newest runs
  allocate runs show last                one run by agent and role
  allocate runs spend --by model         what was spent on what
  allocate runs group 1a2b 3c4d          two sessions were one attempt
  allocate runs export --format csv -o runs.csv
"""

app = typer.Typer(
    help=HELP,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
look.register(app)
edit.register(app)
export.register(app)
