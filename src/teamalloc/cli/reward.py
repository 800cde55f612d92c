"""``allocate reward``: grade a run."""

from __future__ import annotations

from typing import Annotated

import typer

from teamalloc.cli.options import Store, needed_store
from teamalloc.errors import BadInput

HELP = """Give a run its reward: how well the task was done, from 0 to 1.

\b
Examples:
  allocate reward last 0.8
  allocate reward 1a2b3c --pass
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("reward", help=HELP, context_settings={"ignore_unknown_options": True})(reward)


def reward(
    run: Annotated[
        str, typer.Argument(metavar="RUN|last", help="Run or session id, or its start.")
    ],
    value: Annotated[str | None, typer.Argument(metavar="[0..1]")] = None,
    passed: Annotated[bool, typer.Option("--pass", help="The same as 1.")] = False,
    failed: Annotated[bool, typer.Option("--fail", help="The same as 0.")] = False,
    store: Store = None,
) -> None:
    """Grade."""
    grade = _grade(value, passed=passed, failed=failed)
    with needed_store(store) as opened:
        run_id = opened.set_reward(run, grade)
    print(f"{run_id}: reward {grade:g}.")


def _grade(value: str | None, *, passed: bool, failed: bool) -> float:
    if (value is not None) + passed + failed != 1:
        raise BadInput("give one reward.", remedy="A number from 0 to 1, or --pass, or --fail.")
    if value is None:
        return 1.0 if passed else 0.0
    try:
        grade = float(value)
    except ValueError:
        grade = float("nan")
    if not 0.0 <= grade <= 1.0:
        raise BadInput(f"{value!r} is no reward.", remedy="A reward is a number from 0 to 1.")
    return grade
