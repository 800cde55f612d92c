"""``allocate runs export``: runs as files that ``allocate ingest`` reads back."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from teamalloc.cli.files import write_file
from teamalloc.cli.options import Store
from teamalloc.cli.runs import filters
from teamalloc.cli.runs.filters import Filter
from teamalloc.cli.runs.look import read
from teamalloc.data.run import Run
from teamalloc.errors import UnknownName

FORMS = ("csv", "jsonl")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "export",
        help="Write runs as JSONL (all of each run) or CSV (one flat row each).\n\n"
        "Task names, folders and branches stay hashed unless --with-names is given. Read back with: "
        "allocate ingest runs.jsonl, or allocate ingest runs.csv --map docs/maps/export.toml.",
    )(export)


def export(
    form: Annotated[str, typer.Option("--format", metavar="jsonl|csv")] = "jsonl",
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE")] = None,
    with_names: Annotated[
        bool, typer.Option("--with-names", help="Show task names, folders and branches.")
    ] = False,
    model: filters.Model = None,
    role: filters.Role = None,
    client: filters.Client = None,
    source: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="Read from this format.")
    ] = None,
    task: filters.Task = None,
    tag: filters.Tag = None,
    since: filters.Since = None,
    until: filters.Until = None,
    store: Store = None,
) -> None:
    """Write."""
    if form not in FORMS:
        raise UnknownName("export format", form, FORMS)
    runs, labels = read(
        store, Filter(model, role, client, source, task, tuple(tag or ()), since, until)
    )
    if with_names:
        runs = [_named(run, labels) for run in runs]
    lines = _csv_lines(runs) if form == "csv" else _json_lines(runs)
    if output is None:
        sys.stdout.writelines(lines)
        return
    write_file(output, lines)
    print(f"{len(runs)} runs written to {output}.")


def _named(run: Run, labels: dict[str, str]) -> Run:
    tags = tuple((key, labels.get(value, value)) for key, value in run.tags)
    task_id = None if run.task_id is None else labels.get(run.task_id, run.task_id)
    return replace(run, task_id=task_id, tags=tags)


def _json_lines(runs: list[Run]) -> Iterator[str]:
    from teamalloc.data.formats.native import encode

    return (encode(run).decode() + "\n" for run in runs)


def _csv_lines(runs: list[Run]) -> Iterator[str]:
    from teamalloc.data.formats.native import CSV_COLUMNS, csv_row

    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for run in runs:
        writer.writerow(csv_row(run))
    yield buffer.getvalue()
