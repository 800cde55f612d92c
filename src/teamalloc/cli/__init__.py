"""The command ``allocate``: a thin skin with one function call behind each command."""

from __future__ import annotations

import os
import sys

import typer

from teamalloc.cli import answer, fit, ingest, reward, runs
from teamalloc.errors import TeamallocError

# The root of the parser's own errors, which typer exports only by its leaves.
ParserError = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="allocate",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
answer.register(app)
ingest.register(app)
reward.register(app)
fit.register(app)
app.add_typer(runs.app, name="runs")


def main() -> None:
    """Run the command; every error ends here, in plain words and with its exit code."""
    sys.exit(_run())


def _run() -> int:
    try:
        code = typer.main.get_command(app).main(standalone_mode=False)
        sys.stdout.flush()  # a closed pipe shows here at the latest
        return code if isinstance(code, int) else 0
    except TeamallocError as error:
        if os.environ.get("TEAMALLOC_DEBUG"):
            raise
        _say(f"allocate: {error.message}", error.remedy)
        return error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        _say("allocate: stopped; nothing was left half done.")
        return 130
    except BrokenPipeError:
        # The reader of our output went away (head, less): not an error of ours.
        _silence()
        return 0
    except OSError as error:
        if os.environ.get("TEAMALLOC_DEBUG"):
            raise
        where = f" {error.filename}" if error.filename else ""
        _say(
            f"allocate: {error.strerror or error}{where}.",
            "Check the path, its rights and the disk.",
        )
        return 2
    except Exception as error:  # the last resort: a fault of ours must not end in a traceback
        if isinstance(error, ParserError):
            error.show()  # type: ignore[attr-defined]
            return int(error.exit_code)  # type: ignore[attr-defined]
        if os.environ.get("TEAMALLOC_DEBUG"):
            raise
        _say(
            f"allocate: internal error: {type(error).__name__}: {error}.",
            "Please report it; TEAMALLOC_DEBUG=1 shows where it happened.",
        )
        return 1


def _silence() -> None:
    """Let Python's own flush at exit go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _say(*lines: str) -> None:
    from teamalloc.reports.renderers.terminal import printable

    for line in lines:
        if line:
            print(printable(line), file=sys.stderr)
