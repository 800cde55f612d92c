"""``allocate runs group | ungroup | split | confirm | task | forget``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from teamalloc.cli.options import Store, needed_store, parse_day, parse_moment
from teamalloc.errors import BadInput

Words = Annotated[list[str], typer.Argument(metavar="RUN...")]
Word = Annotated[str, typer.Argument(metavar="RUN")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("group", help="Merge runs: several sessions were one attempt.")(group)
    app.command("ungroup", help="Undo the last split of a run, else its merging.")(ungroup)
    app.command("split", help="Make two runs of one, at a turn or a time.")(split)
    app.command("confirm", help="A session with several prompts was one task: let it into fits.")(
        confirm
    )
    app.command("task", help="Name the task of a run; the name is kept in the local label table.")(
        task
    )
    app.command("forget", help="Delete runs and all that was said about them.")(forget)


def group(
    runs: Words,
    task: Annotated[str | None, typer.Option(metavar="NAME", help="Name its task.")] = None,
    store: Store = None,
) -> None:
    """Merge."""
    with needed_store(store) as opened:
        print(f"{opened.group(runs, task)}: merged from {len(runs)} runs.")


def ungroup(run: Word, store: Store = None) -> None:
    """Undo."""
    with needed_store(store) as opened:
        print(f"Now: {', '.join(opened.ungroup(run))}.")


def split(
    run: Word,
    at_turn: Annotated[
        int | None, typer.Option(metavar="N", help="The second begins here; the first turn is 0.")
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="TIME", help="… or with the first turn from then on.")
    ] = None,
    store: Store = None,
) -> None:
    """Divide."""
    if (at_turn is None) == (at is None):
        raise BadInput("give either --at-turn or --at.")
    with needed_store(store) as opened:
        moment = None if at is None else parse_moment(at)
        print(f"Now: {', '.join(opened.split(run, at_turn=at_turn, at_time=moment))}.")


def confirm(runs: Words, store: Store = None) -> None:
    """Confirm."""
    with needed_store(store) as opened:
        for word in runs:
            print(f"{opened.confirm(word)}: counts as one task.")


def task(
    run: Word, name: Annotated[str, typer.Argument(metavar="NAME")], store: Store = None
) -> None:
    """Name."""
    with needed_store(store) as opened:
        print(f"{opened.set_task(run, name)}: task {name}.")


def forget(
    runs: Annotated[list[str] | None, typer.Argument(metavar="[RUN...]")] = None,
    source: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="Read from this format.")
    ] = None,
    client: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of this agent program.")
    ] = None,
    session: Annotated[str | None, typer.Option(metavar="ID", help="Of this session.")] = None,
    before: Annotated[
        str | None, typer.Option(metavar="DATE", help="Started before this day.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    store: Store = None,
) -> None:
    """Delete."""
    from datetime import datetime, time

    if not (runs or source or client or session or before):
        raise BadInput(
            "say which runs to forget.", remedy="Name runs, or --source, --client, --before …"
        )
    day = None if before is None else datetime.combine(parse_day(before), time.min).astimezone()
    if not yes and not sys.stdin.isatty():
        raise BadInput("runs are deleted for good.", remedy="Add --yes.")
    if not yes:
        typer.confirm("Delete these runs for good?", abort=True)
    with needed_store(store) as opened:
        n = opened.forget(runs or (), session=session, format=source, client=client, before=day)
    print(f"{n} runs forgotten.")
