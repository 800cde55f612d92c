"""``allocate ingest``: logs into the run store."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from teamalloc.cli.options import AsJson, Prices, Store
from teamalloc.errors import BadInput

if TYPE_CHECKING:
    from teamalloc.data.ingest import Ingested
    from teamalloc.data.run import Run

HELP = """Read logs of agent runs into the run store.

Takes files and folders and tells the format by their content: Claude Code sessions, Codex rollouts,
mini-swe-agent trajectories, our own JSONL; CSV with a column map. The same files again change
nothing. What cannot be read is listed by file and line, the rest lands. Prompts, code and paths
are never stored.

\b
Examples:
  allocate ingest ~/.claude/projects ~/.codex/sessions
  allocate ingest results.csv --map map.toml
  allocate ingest runs/ --rewards rewards.csv
  allocate ingest --rewards rewards.csv
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ingest", help=HELP)(ingest)


def ingest(
    paths: Annotated[list[Path] | None, typer.Argument(metavar="PATH...")] = None,
    table_map: Annotated[
        Path | None, typer.Option("--map", metavar="FILE", help="Column map (TOML) for CSV files.")
    ] = None,
    format: Annotated[
        str | None, typer.Option(metavar="NAME", help="Format of all files; default: by content.")
    ] = None,
    rewards: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV with a reward for each run, session or task."),
    ] = None,
    prices: Prices = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Ingest and say what came of it."""
    from teamalloc.data.ingest import ingest as ingest_logs
    from teamalloc.data.prices import PriceBook
    from teamalloc.data.store import RunStore
    from teamalloc.reports.renderers.terminal import printable

    if not paths and rewards is None:
        raise BadInput(
            "nothing to ingest was given.",
            remedy="Name files or folders: allocate ingest ~/.claude/projects ~/.codex/sessions.",
        )
    book = PriceBook.load(prices)
    missing = [path for path in paths or [] if not path.exists()]
    if missing:
        raise BadInput(f"{missing[0]} does not exist.", remedy="Check the path.")
    with RunStore.open(store) as opened:
        with _progress() as progress:
            done = ingest_logs(
                [path.absolute() for path in paths or []],
                store=opened,
                prices=book,
                format=format,
                table_map=table_map,
                rewards=rewards,
                progress=progress,
            )
        known = set(done.run_ids)
        runs = [run for run in opened.runs() if run.run_id in known]
    sys.stdout.write(_as_json(done, runs) if as_json else _in_words(done, runs))
    for reject in done.rejects:
        print(f"rejected {printable(str(reject))}", file=sys.stderr)
    if done.rejects and not done.run_ids and not done.n_rewards:
        raise typer.Exit(BadInput.exit_code)


@contextmanager
def _progress() -> Iterator[Callable[[Path, int], None] | None]:
    """A progress line on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("looking for logs")
        files = size = 0

        def advance(_: Path, size_bytes: int) -> None:
            nonlocal files, size
            files, size = files + 1, size + size_bytes
            shown.update(task, description=f"{files} files, {size / 1e6:,.1f} MB")

        yield advance


def _in_words(done: Ingested, runs: list[Run]) -> str:
    from teamalloc.reports.renderers.terminal import printable

    n = done.added + done.updated + done.unchanged
    total = sum((run.cost_usd * run.n_runs for run in runs if run.cost_usd is not None), Decimal(0))
    unknown = sum(run.cost_usd is None for run in runs)
    graded = sum(run.reward is not None for run in runs)
    lines = [
        f"{n} runs: {done.added} new, {done.updated} updated, {done.unchanged} unchanged; "
        f"{graded} graded; ${total:,.2f} known"
        + (f", {unknown} of unknown cost." if unknown else ".")
    ]
    if done.n_rewards:
        lines.append(f"{done.n_rewards} rewards taken from the file.")
    lines += [f"  {name}: {count} runs" for name, count in done.n_by_format]
    if done.repeated_requests:
        lines.append(f"{done.repeated_requests} repeated requests counted once.")
    for skipped in done.skipped:
        lines.append(f"skipped {printable(str(skipped))}")
    if done.rejects:
        lines.append(f"{len(done.rejects)} rejected, see below.")
    multi = sum(run.multi_turn for run in runs)
    if multi:
        lines.append(
            f"{multi} with several prompts stay out of the fits until you confirm that each is one "
            "task: allocate runs confirm RUN."
        )
    if n == 0:
        lines.append("Nothing was taken in.")
    elif n > graded:
        lines.append("Next: grade runs (allocate reward RUN 0.8), then allocate --budget 50.")
    else:
        lines.append("Next: allocate --budget 50 --max-latency 30m.")
    return "\n".join(lines) + "\n"


def _as_json(done: Ingested, runs: list[Run]) -> str:
    import msgspec

    from teamalloc.data.records import as_row

    data = msgspec.to_builtins(done, enc_hook=str)
    data["rejects"] = [_reject(r.path, r.line, r.reason) for r in done.rejects]
    data["skipped"] = [_reject(r.path, r.line, r.reason) for r in done.skipped]
    data["runs"] = [as_row(run) for run in runs]
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode() + "\n"


def _reject(path: Path, line: int | None, reason: str) -> dict[str, object]:
    return {"path": str(path), "line": line, "reason": reason}
