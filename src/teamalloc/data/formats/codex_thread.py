"""One Codex thread: its files put together, the rows that are its own, the requests it made.

A thread that continues another one's history may repeat that history at its start, stamped with
the moment of the fork. Those rows belong to the other thread. Usage is logged twice over: as a
running total after each response (``token_count``, repeated at will) and, by newer clients, as one
record for each response.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from teamalloc.data.formats import OnReject, Reject, Request
from teamalloc.data.formats.codex_rows import (
    Call,
    Content,
    Context,
    Count,
    End,
    Meta,
    Record,
    Row,
    Sign,
    Start,
    Usage,
    read_row,
)
from teamalloc.data.formats.jsonl import Damage, records
from teamalloc.data.run import Status, Tokens

_UUID7 = re.compile(r"([0-9a-f]{8}-[0-9a-f]{4})-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass(slots=True)
class Thread:
    """All rows of one thread, in order."""

    thread_id: str
    meta: Meta
    rows: list[Row]
    digest: str
    n_damaged: int = 0
    first_own: int = 0
    "index of the first row that is no copy of another thread's"

    @property
    def own(self) -> Sequence[Row]:
        """The rows that are not copied."""
        return self.rows[self.first_own :]

    @property
    def instants(self) -> list[datetime]:
        """When its own rows were written."""
        return [row.at for row in self.own if row.at is not None]


def read_thread(thread_id: str, meta: Meta, paths: Sequence[Path], on_reject: OnReject) -> Thread:
    """Read a thread's files, the oldest first.

    A client may go on with a thread in another file. Rows which such a file repeats are left out.
    """
    thread = Thread(thread_id, meta, [], "")
    digests = []
    for path in paths:
        digest, damage = hashlib.sha256(), Damage()
        found = records(path, on_reject, digest=digest, damage=damage)
        every = (read_row(path, line, record) for line, record in found)
        rows = list(_thin(every, meta.first_own_ordinal or 0))
        thread.rows += rows[_n_shared(rows, thread.rows) :]
        thread.n_damaged += damage.n_lines
        digests.append(digest.hexdigest())
    for row in thread.rows:
        for fault in row.faults:
            on_reject(Reject(row.path, fault, row.line))
    thread.digest = combine_digests(digests)
    return thread


def _thin(rows: Iterable[Row], first_own_ordinal: int) -> Iterator[Row]:
    """Leave out what lies between the first and the last of like rows that only mark the time.

    So a thread takes as much memory as it has requests, however much else its client logs. Rows up
    to the first own one stay: they decide where that one is.
    """
    before: Content | None = None
    held: Row | None = None
    for row in rows:
        is_like = isinstance(row.content, Sign) and row.content.kind in ("", "reply")
        if is_like and row.content == before and (row.ordinal or math.inf) > first_own_ordinal:
            held = row
            continue
        if held is not None:
            yield held
        before, held = row.content, None
        yield row
    if held is not None:
        yield held


def combine_digests(digests: Sequence[str]) -> str:
    """One SHA-256 (hex) of several, whatever their order."""
    return hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()


# ------------------------------------------------------------------------------- its own rows


def find_first_own(thread: Thread, parent: Thread | None, siblings: Sequence[Thread]) -> int:
    """Index of the first row of ``thread`` that is no copy.

    Three signs, the surest first: the ordinal the file states; the usage rows it shares with the
    thread it continues (or, if that is gone, with an earlier one that continues it too); the first
    turn that is younger than the thread. Without any of them every row counts as its own.
    """
    rows, ordinal = thread.rows, thread.meta.first_own_ordinal
    if ordinal is not None and any(row.ordinal is not None for row in rows):
        for index, row in enumerate(rows):
            if row.ordinal is not None and row.ordinal >= ordinal:
                return index
        return 0 if thread.meta.has_base else len(rows)
    if thread.meta.has_base or not _has_copies(thread):
        return 0
    others = [parent] if parent is not None else siblings
    shared = max((_n_shared(rows, other.rows) for other in others), default=0)
    return max(shared, _first_own_turn(thread))


def _has_copies(thread: Thread) -> bool:
    """Copied history is announced in the head, or shows as a second head."""
    return thread.meta.forked_from is not None or any(
        isinstance(row.content, Meta) and row.content.thread_id != thread.thread_id
        for row in thread.rows
    )


def _n_shared(rows: Sequence[Row], others: Sequence[Row]) -> int:
    """Rows up to the last usage row that both begin with; 0 if the first already differs."""
    n = 0
    for (index, mark), (_, other) in zip(_marks(rows), _marks(others), strict=False):
        if mark != other:
            break
        n = index + 1
    return n


def _marks(rows: Sequence[Row]) -> Iterator[tuple[int, object]]:
    """Usage rows by what they say: running totals that moved, or records if there are none."""
    before: Usage | None = None
    has_counts = any(isinstance(row.content, Count) for row in rows)
    for index, row in enumerate(rows):
        content = row.content
        if isinstance(content, Count) and content.total not in (None, before):
            before = content.total
            yield index, (content.last, content.total)
        elif isinstance(content, Record) and not has_counts:
            yield index, content.response_id


def _first_own_turn(thread: Thread) -> int:
    """Index at which the first turn begins that is not older than the thread; 0 = cannot be told.

    Both ids are UUIDs of version 7, which begin with the time they were made at.
    """
    made = _UUID7.fullmatch(thread.thread_id)
    seen = False
    for index, row in enumerate(thread.rows):
        if made and isinstance(row.content, Start | Context) and row.content.turn_id:
            begun = _UUID7.fullmatch(row.content.turn_id)
            if begun and begun[1] >= made[1]:
                return index
            seen = seen or begun is not None
    return len(thread.rows) if seen else 0


# ------------------------------------------------------------------------------- its requests


def read_requests(thread: Thread, on_reject: OnReject) -> list[Request]:
    """Every response of a model, once.

    Records are used where the client writes them; running totals only for the turns before the
    first record, when an older client worked on the thread.
    """
    first_record = _first_record(thread)
    settings = {
        row.content.turn_id: row.content for row in thread.own if isinstance(row.content, Context)
    }
    requests: dict[str, Request] = {}
    context = _inherited(thread)
    values = dict(_counted(thread.rows[:first_record], thread.first_own))
    for index, row in enumerate(thread.own, thread.first_own):
        content = row.content
        if isinstance(content, Context):
            context = content
        elif isinstance(content, Record) and content.thread_id in (None, thread.thread_id):
            name = content.response_id or f"{row.at}:{content.usage}"
            request = _request(thread, name, row, settings.get(content.turn_id, context))
            if (request.key or "") not in requests:
                request.tokens = _tokens(content.usage, row, on_reject)
                requests[request.key or ""] = request
        elif isinstance(content, Count) and any(values.get(index, ())):
            name = f"{row.at}:{'-'.join(map(str, content.total or ()))}"
            request = _request(thread, name, row, context)
            request.model = content.model or request.model
            request.tokens = _tokens(values[index], row, on_reject)
            requests[request.key or ""] = request
    return list(requests.values())


def is_usage_missing(thread: Thread, requests: Sequence[Request]) -> bool:
    """Whether a model surely answered, but nothing says what that took."""
    return not requests and any(_is_answer(row.content) for row in thread.own)


def _is_answer(content: Content) -> bool:
    if isinstance(content, Sign):
        return content.kind in ("reply", "no usage")
    return isinstance(content, Call | Count)


def _counted(rows: Sequence[Row], first_own: int) -> Iterator[tuple[int, Usage]]:
    """What each own running total adds: its index and the usage of that response.

    A total that did not move is a repetition. The first own one is taken at its last response:
    the counter of a child may start at zero or go on from the parent's. So is one that fell:
    the counter was reset.
    """
    before: Usage | None = None
    is_first = True
    for index, row in enumerate(rows):
        content = row.content
        if not isinstance(content, Count) or content.total is None or content.total == before:
            continue
        added = content.total if before is None else content.total.since(before)
        if min(added) < 0:
            added = content.last or content.total
        if index >= first_own:
            yield index, content.last if is_first and content.last is not None else added
            is_first = False
        before = content.total


def _first_record(thread: Thread) -> int:
    """Index at which the turn of the first own record begins; the end if there is no record."""
    begun = thread.first_own
    for index, row in enumerate(thread.own, thread.first_own):
        content = row.content
        if isinstance(content, Start):
            begun = index
        elif isinstance(content, Record) and content.thread_id in (None, thread.thread_id):
            return begun
    return len(thread.rows)


def _inherited(thread: Thread) -> Context | None:
    """Settings in force before the first own ones: a fork by the user goes on with the old ones."""
    if thread.meta.kind is not None:
        return None  # another agent's settings say nothing of this one's
    copied = [r.content for r in thread.rows[: thread.first_own] if isinstance(r.content, Context)]
    return copied[-1] if copied else None


def _request(thread: Thread, name: str, row: Row, context: Context | None) -> Request:
    return Request(
        key=f"codex:{thread.thread_id}:{name}",
        at=row.at,
        model=context.model if context else None,
        tokens=None,
        effort=context.effort if context else None,
    )


def _tokens(usage: Usage | None, row: Row, on_reject: OnReject) -> Tokens | None:
    """Kinds that do not overlap; None if they cannot be told apart."""
    if usage is None:
        return None
    fresh = usage.input - usage.cached - usage.written
    if fresh < 0:
        parts = usage.cached + usage.written
        reason = f"{parts} cached tokens are more than the {usage.input} of the input"
        on_reject(Reject(row.path, reason, row.line))
        return None
    return Tokens(fresh, usage.cached, usage.written, 0, usage.output)


# ------------------------------------------------------------------------------- its turns


@dataclass(slots=True)
class Turn:
    """Work between two waits for a person."""

    start: datetime
    end: datetime
    turn_id: str | None = None
    is_explicit: bool = False
    "the client said that it began; otherwise it was concluded from what happened"
    has_prompt: bool = False
    has_answer: bool = False
    status: Status = "unknown"


def read_turns(thread: Thread) -> list[Turn]:
    """The turns of a thread, from the first row of each to its last.

    Rows after the end of a turn (settings, late results) belong to none.
    """
    turns: list[Turn] = []
    is_open = False
    for row in thread.own:
        content = row.content
        if row.at is None or isinstance(content, Meta):
            continue
        if _opens(content, turns[-1] if is_open else None) or not turns:
            turns.append(Turn(row.at, row.at))
            is_open = True
        elif not is_open:
            continue
        _note(turns[-1], content)
        turns[-1].end = max(turns[-1].end, row.at)
        is_open = not isinstance(content, End)
    return turns


def _opens(content: Content, turn: Turn | None) -> bool:
    """Whether a row begins another turn than the one that is open."""
    is_prompt = content == Sign("prompt")
    if turn is None:
        return is_prompt or isinstance(content, Start | Context)
    if isinstance(content, Start):
        # The settings of a turn may be written before its start.
        return turn.is_explicit or turn.has_answer or _differs(content, turn)
    if isinstance(content, Context):
        return _differs(content, turn)
    return is_prompt and turn.has_answer and not turn.is_explicit


def _differs(content: Start | Context, turn: Turn) -> bool:
    return None not in (content.turn_id, turn.turn_id) and content.turn_id != turn.turn_id


def _note(turn: Turn, content: Content) -> None:
    if isinstance(content, Start | Context):
        turn.turn_id = turn.turn_id or content.turn_id
        turn.is_explicit = turn.is_explicit or isinstance(content, Start)
    elif isinstance(content, End):
        turn.status = "failed" if turn.status == "failed" else content.status
    elif content == Sign("prompt"):
        turn.has_prompt = True
    elif content == Sign("error"):
        turn.status = "failed"
    elif _is_answer(content) or isinstance(content, Record):
        turn.has_answer = True
        turn.status = "unknown"  # it went on after an error
