"""Runs put together from what the tables hold, and the tables kept tidy; all inside a transaction.

What was read, edits over it, merged with those it was grouped with, edits over that, split, and
edits over the parts.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from teamalloc.data.grouping import merge, split
from teamalloc.data.outline import Item, ReadRun, Whole, outline
from teamalloc.data.records import decode_run
from teamalloc.data.run import Run, with_reward
from teamalloc.data.schema import EDITS, GROUPS, LABELS, RUNS, SPLITS
from teamalloc.errors import BadInput, StoreError

Edits = dict[str, dict[str, Any]]

_BATCH = 1_000  # values in one statement: databases have a limit
_LABEL = re.compile(rb'"([a-z_]+-[0-9a-f]{12})"')


def read_outline(connection: sa.Connection) -> list[Item]:
    read = sa.select(RUNS.c.run_id, RUNS.c.session_id, RUNS.c.started_us)
    return outline(
        [ReadRun(*row) for row in connection.execute(read)],
        read_groups(connection),
        _splits(connection),
    )


def read_groups(connection: sa.Connection) -> dict[str, str]:
    return dict(connection.execute(sa.select(GROUPS.c.run_id, GROUPS.c.group_id)).all())


def _splits(connection: sa.Connection) -> dict[str, int]:
    return dict(connection.execute(sa.select(SPLITS.c.run_id, SPLITS.c.at_turn)).all())


def load(connection: sa.Connection, items: Iterable[Item]) -> Iterator[Run]:
    """The runs of the wholes that these items belong to."""
    wholes = {item.whole.subject: item.whole for item in items}
    ids = [run_id for whole in wholes.values() for run_id in whole.read_ids]
    query = sa.select(RUNS.c.run_id, RUNS.c.body)
    if len(ids) <= _BATCH:
        query = query.where(RUNS.c.run_id.in_(ids))
    bodies = dict(connection.execute(query).all())
    edits: Edits = defaultdict(dict)
    for subject, field, value in connection.execute(sa.select(EDITS)):
        edits[subject][field] = json.loads(value)
    splits = _splits(connection)
    for whole in wholes.values():
        yield from _split_again(_merged(whole, bodies, edits), splits, edits)


def load_one(connection: sa.Connection, item: Item) -> Run:
    for run in load(connection, [item]):
        if run.run_id == item.run_id:
            return run
    raise BadInput(
        f"there is no run {item.run_id} any more: its log has lost the turn to split at.",
        remedy=f"Undo the split: `allocate runs ungroup {item.run_id}`.",
    )


def _merged(whole: Whole, bodies: dict[str, bytes], edits: Edits) -> Run:
    runs = []
    for run_id in whole.read_ids:
        try:
            run = decode_run(bodies[run_id])
        except BadInput as error:
            raise StoreError(
                f"run {run_id} is damaged: {error.message}",
                remedy=f"`allocate runs forget {run_id}`, then ingest its log again.",
            ) from error
        runs.append(_edited(run, edits.get(run_id)))
    return _edited(merge(runs) if len(runs) > 1 else runs[0], edits.get(whole.subject))


def _split_again(run: Run, splits: dict[str, int], edits: Edits) -> Iterator[Run]:
    try:
        parts = split(run, splits[run.run_id]) if run.run_id in splits else ()
    except BadInput:  # its log was read again and has fewer turns now
        parts = ()
    if not parts:
        yield run
    for part in parts:
        yield from _split_again(_edited(part, edits.get(part.run_id)), splits, edits)


def _edited(run: Run, edits: dict[str, Any] | None) -> Run:
    if not edits:
        return run
    if "reward" in edits:
        run = with_reward(run, *edits["reward"])
    return replace(
        run, **{name: edits[name] for name in ("task_id", "multi_turn") if name in edits}
    )


# --- keeping the tables tidy ----------------------------------------------------------------------


def sweep(connection: sa.Connection) -> list[Item]:
    """Drop edits and splits of what is no more; return what there is."""
    items = read_outline(connection)
    split_up = {run_id for item in items for run_id in item.split_from}
    alive = split_up.union(
        *({item.subject, item.whole.subject, *item.whole.read_ids} for item in items)
    )
    delete_rows(connection, SPLITS.c.run_id, _splits(connection).keys() - split_up)
    subjects = set(connection.scalars(sa.select(EDITS.c.subject)))
    delete_rows(connection, EDITS.c.subject, subjects - alive)
    return items


def sweep_labels(connection: sa.Connection) -> None:
    """Drop names that no run and no edit uses: to forget a run is to forget its name."""
    used: set[str] = set()
    for body in connection.scalars(sa.select(RUNS.c.body)):
        used.update(label.decode() for label in _LABEL.findall(body))
    for value in connection.scalars(sa.select(EDITS.c.value)):
        used.update(label.decode() for label in _LABEL.findall(value.encode()))
    known = set(connection.scalars(sa.select(LABELS.c.label)))
    delete_rows(connection, LABELS.c.label, known - used)


def delete_rows(connection: sa.Connection, column: sa.Column[Any], values: Collection[Any]) -> None:
    """Delete the rows that have one of these values."""
    for batch in batches(values):
        connection.execute(sa.delete(column.table).where(column.in_(batch)))


def batches(values: Collection[Any]) -> Iterator[list[Any]]:
    listed = list(values)
    for start in range(0, len(listed), _BATCH):
        yield listed[start : start + _BATCH]
