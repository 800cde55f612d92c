"""From files on disk to stored runs: find, read, count once, price, infer roles, store.

with RunStore.open() as store:
    done = ingest([Path("~/.claude").expanduser()], store=store, prices=PriceBook.load())
    print(done.added, *done.rejects, sep="\\n")
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from teamalloc.data.assembly import load, read_outline
from teamalloc.data.find_logs import Found, Progress, find_logs
from teamalloc.data.formats import Format, Reject, Session, formats
from teamalloc.data.from_session import (
    request_keys,
    run_from_session,
    run_id_of,
    without_repeats,
)
from teamalloc.data.outline import find
from teamalloc.data.prices import PriceBook
from teamalloc.data.reward_file import RewardRow, read_rewards
from teamalloc.data.run import Run
from teamalloc.data.store import RunStore, Writer
from teamalloc.errors import BadInput, BadLog
from teamalloc.registry import look_up


@dataclass(frozen=True, slots=True)
class Ingested:
    """What an ingest did."""

    added: int
    "runs that were new"
    updated: int
    "runs that were read again and differ: a log that grew, a mended reader, other prices"
    unchanged: int
    "runs that were stored already, exactly so"
    repeated_requests: int
    "requests not counted, because another run (or another row of the log) owns them"
    rejects: tuple[Reject, ...]
    "files and lines that could not be used"
    skipped: tuple[Reject, ...]
    "logs of a known kind that this version does not read"
    run_ids: tuple[str, ...]
    "every run in these files, in the order it was read"
    no_reward: int
    "of these, runs without a reward: they teach cost and latency only"
    n_rewards: int = 0
    "rewards taken from a rewards file"
    n_by_format: tuple[tuple[str, int], ...] = ()
    "(format, runs), sorted"


def ingest(
    paths: Sequence[Path],
    *,
    store: RunStore,
    prices: PriceBook,
    format: str | None = None,
    table_map: Path | None = None,
    rewards: Path | None = None,
    progress: Progress | None = None,
) -> Ingested:
    """Read logs into the store, all of it or (after an error or a kill) nothing.

    What cannot be read is rejected by file and line, the rest lands. The same files again change
    nothing.

    Args:
        paths: files and folders; may be empty if only rewards are given.
        store: where to put the runs.
        prices: price each request at its own time.
        format: name of the reader for all files; None = tell by their content.
        table_map: column map; what is no log but ends in .csv, .tsv or .jsonl is read with it.
        rewards: CSV file with rewards by run, session or task.
        progress: called for each file looked at, with its size in bytes.

    Raises:
        BadInput: nothing to read in a path, or a reward that fits no single run.
        BadLog: the column map or the rewards file is wrong.
        UnknownName: there is no such format.
        StoreError: the store cannot be written.
    """
    readers = _readers(format, table_map)
    found = find_logs(paths, readers, forced=format is not None, progress=progress)
    graded = [] if rewards is None else read_rewards(rewards)
    work = _Work(found)
    with store.writing() as writer:
        for name, files in found.by_format.items():
            for session in _read(readers[name], files, work.rejects):
                _put(session, readers[name], writer, prices, work)
        for row in graded:
            assert rewards is not None  # noqa: S101 - narrowed: rows come from there
            work.graded.add(_reward(row, rewards, writer))
    return work.done()


class _Work:
    """What is counted on the way."""

    def __init__(self, found: Found) -> None:
        self.rejects = found.rejects
        self.skipped = found.skipped
        self.changes: Counter[str] = Counter()
        self.by_format: Counter[str] = Counter()
        self.n_repeated = 0
        self.rewarded: dict[str, bool] = {}
        self.graded: set[str] = set()

    def count(self, run: Run, change: str) -> None:
        self.changes[change] += 1
        self.by_format[run.source.format] += 1
        self.rewarded[run.run_id] = run.reward is not None

    def done(self) -> Ingested:
        return Ingested(
            added=self.changes["added"],
            updated=self.changes["updated"],
            unchanged=self.changes["unchanged"],
            repeated_requests=self.n_repeated,
            rejects=tuple(self.rejects),
            skipped=tuple(self.skipped),
            run_ids=tuple(self.rewarded),
            no_reward=sum(
                not known and run_id not in self.graded for run_id, known in self.rewarded.items()
            ),
            n_rewards=len(self.graded),
            n_by_format=tuple(sorted(self.by_format.items())),
        )


def _readers(format: str | None, table_map: Path | None) -> dict[str, Format]:
    """Readers in the order in which they are asked whether a file is theirs."""
    readers = dict(formats())
    if table_map is not None:
        from teamalloc.data.formats.table import Table

        readers["table"] = Table(table_map)  # the last: it takes any file by its name
    elif format == "table":
        raise BadInput("a table needs a column map.", remedy="Give one with --map map.toml.")
    if format is not None:
        readers = {format: look_up(readers, format, kind="format")}
    return readers


def _read(reader: Format, files: Sequence[Path], rejects: list[Reject]) -> Iterator[Session]:
    if files:
        yield from reader.read(files, rejects.append)


def _put(session: Session, reader: Format, writer: Writer, prices: PriceBook, work: _Work) -> None:
    """Store one session, unless nothing in it is its own."""
    if session.run is not None:
        work.count(session.run, writer.put(session.run, ()))
        return
    run_id = run_id_of(reader.name, session.session_id)
    repeated = writer.owned_elsewhere(request_keys(session), run_id)
    own, n_repeated = without_repeats(session, repeated)
    work.n_repeated += n_repeated
    if own is None:
        return
    try:
        run = run_from_session(
            own,
            format_name=reader.name,
            reader_version=reader.version,
            prices=prices,
            salted=writer.salted,
        )
    except BadInput as error:
        work.rejects.append(Reject(Path(session.session_id), f"session not used: {error}"))
        return
    work.count(run, writer.put(run, request_keys(own)))


def _reward(row: RewardRow, path: Path, writer: Writer) -> str:
    """Grade the one run that a row of the rewards file means; return its id."""
    items = read_outline(writer.connection)
    try:
        if row.subject == "task":
            label = writer.salted("task", row.name)
            ids = {
                run.run_id
                for run in load(writer.connection, items)
                if run.task_id in (label, row.name)
            }
            if len(ids) != 1:
                raise BadInput(
                    f"task {row.name!r} has {len(ids)} runs.",
                    remedy="Name the run or the session instead.",
                )
            item = find(items, ids.pop())
        else:
            item = find(items, row.name)
    except BadInput as error:
        raise BadLog(path, error.message, line=row.line, remedy=error.remedy) from error
    writer.reward(item.subject, row.reward, "file")
    return item.run_id
