"""What one agent of a Claude Code session did, built up row by row.

A response is written as several rows, copied when a session is resumed, and replayed in side
questions. ``Responses`` counts it once; ``AgentLog`` adds the times and tools around it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from teamalloc.data.formats import AgentTrace, Request
from teamalloc.data.formats.claude_rows import (
    COMMAND_TOOLS,
    EDIT_TOOLS,
    PERSON_TOOLS,
    SPAWN_TOOLS,
    Answer,
    Call,
    Result,
    Row,
    Usage,
)
from teamalloc.data.run import Status

Owned = Mapping[str, datetime | None]
"keys of responses that belong to a session or agent read before -> end of the turn they were in"

_UNIQUE = re.compile(r"[0-9A-Za-z-]{16,}")


@dataclass(slots=True)
class Response:
    """One response of a model, with the most complete of the rows that tell of it."""

    message_id: str
    first_at: datetime | None
    stretch: int
    "rows of the user before its newest row"
    best: Answer
    at: datetime | None
    copied: bool = False

    def take(self, answer: Answer, at: datetime | None) -> None:
        """Keep the row with the largest output as a whole; of equals the later one."""
        if answer.output >= self.best.output:
            self.best, self.at = answer, at

    def key(self, *, unique: bool) -> str:
        """Identity over copies, which keep the message, its usage and its time.

        An identifier that a gateway repeats is made unique by request, prompt and time.
        """
        parts = [self.message_id]
        if not unique:
            prompt = None if self.best.usage is None else self.best.usage.prompt
            parts += [str(self.best.request_id), str(prompt), str(self.first_at)]
        return "claude:" + hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]

    def request(self, key: str) -> Request:
        """The record all formats share."""
        best = self.best
        return Request(
            key=key,
            at=self.at,
            model=best.model,
            tokens=None if best.usage is None else best.usage.tokens,
            effort=best.effort,
            speed=best.speed,
            service_tier=best.service_tier,
            cost_reported_usd=best.cost_usd,
            lower_bound=best.usage is not None and not best.finished,
        )


class Responses:
    """Responses of one agent, each once."""

    def __init__(self) -> None:
        self._all: list[Response] = []
        self._by_slot: dict[tuple[object, ...], Response] = {}
        self._latest: dict[str, Response] = {}
        self._repeated: set[str] = set()
        "identifiers that stand for several responses"

    def add(self, answer: Answer, at: datetime | None, *, stretch: int, owned: Owned) -> Response:
        """Count a row's response unless it is known; ``stretch`` counts the user's rows so far."""
        name = answer.message_id or answer.request_id or f"at {at}"
        prompt = None if answer.usage is None else answer.usage.prompt
        slot = (name, prompt, None if _is_unique(name) else answer.request_id)
        found = self._by_slot.get(slot)
        latest = self._latest.get(name)
        if found is None and latest is not None:
            no_usage = prompt is None or latest.best.usage is None
            if latest.stretch == stretch or (no_usage and _is_unique(name)):
                found = latest
            else:
                self._repeated.add(name)
        if found is None:
            found = Response(name, at, stretch, answer, at)
            found.copied = any(found.key(unique=unique) in owned for unique in (True, False))
            self._all.append(found)
        else:
            found.take(answer, at)
        found.stretch = stretch
        self._by_slot[slot] = self._latest[name] = found
        return found

    def keyed(self) -> list[tuple[str, Response]]:
        """All of them with their final keys, in order of appearance."""
        return [(self._key(response), response) for response in self._all]

    def last_before(self, at: datetime | None) -> Response | None:
        """The newest response at or before an instant."""
        timed = [(r.at, r) for r in self._all if r.at is not None]
        early = [pair for pair in timed if at is None or pair[0] <= at]
        return max(early, key=lambda pair: pair[0])[1] if early else None

    def _key(self, response: Response) -> str:
        name = response.message_id
        return response.key(unique=_is_unique(name) and name not in self._repeated)


def _is_unique(identifier: str) -> bool:
    """Whether it looks like one of a kind, unlike ``msg_translated``."""
    tail = identifier.rpartition("_")[2]
    return (
        _UNIQUE.fullmatch(tail) is not None
        and any(letter.isdigit() for letter in tail)
        and len(set(tail)) >= 6
    )


@dataclass(slots=True)
class Doings:
    """What an agent did apart from its responses; thrown away when it turns out to be copied."""

    intervals: list[list[datetime]] = field(default_factory=list)
    turn_starts: list[datetime] = field(default_factory=list)
    n_prompts: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None
    edit_times: list[datetime] = field(default_factory=list)
    n_edits: int = 0
    n_commands: int = 0
    n_tools: int = 0
    waited_s: float | None = None
    spawns: dict[str, Call] = field(default_factory=dict)
    results: list[tuple[Result, datetime | None]] = field(default_factory=list)
    prompt_hash: bytes | None = None
    "of its first prompt"
    ending: Status | None = None
    "how it would have ended with the newest row; None = not at an end"
    command_at: datetime | None = None
    "a slash command that may or may not start a turn"


class AgentLog:
    """Rows of one agent, in the order of its file."""

    def __init__(self, agent_id: str) -> None:
        self.agent_id = agent_id
        self.responses = Responses()
        self.did = Doings()
        self.damaged_lines = 0
        self._n_user_rows = 0
        self._copied_until: datetime | None = None
        self._seen: set[str] = set()
        "tool calls and prompts: a file rewritten or moved repeats them"
        self._asked_person: set[str] = set()

    def add(self, row: Row, owned: Owned, *, foreign: bool = False) -> None:
        """Take in a row; ``foreign`` = it names another session, so it is a copy."""
        if row.kind == "user":
            self._n_user_rows += 1
        copied = foreign or row.forked
        if row.answer is not None:
            response = self.responses.add(
                row.answer, row.at, stretch=self._n_user_rows, owned=owned
            )
            if response.copied:
                self._forget(response, owned)
                copied = True
            else:
                self._copied_until = None
        if not copied and not self._is_tail_of_copy(row):
            self._do(row)

    def _forget(self, response: Response, owned: Owned) -> None:
        """A copied response: everything before it was copied too, and the rest of its turn is."""
        self.did = Doings()
        ends = (owned.get(response.key(unique=unique)) for unique in (True, False))
        self._copied_until = next(filter(None, ends), response.at)

    def _is_tail_of_copy(self, row: Row) -> bool:
        return (
            self._copied_until is not None and row.at is not None and row.at <= self._copied_until
        )

    def _do(self, row: Row) -> None:
        did = self.did
        if row.retry_s is not None and self._is_new(row.uuid):
            did.waited_s = (did.waited_s or 0.0) + row.retry_s
        if row.at is not None and not row.meta and (row.kind != "system" or row.turn_over):
            did.first_at = row.at if did.first_at is None else min(did.first_at, row.at)
            did.last_at = row.at if did.last_at is None else max(did.last_at, row.at)
        if row.kind == "system":
            did.ending = _after_system(did.ending, row)
            return
        for call in row.calls:
            self._use_tool(call, row.at)
        did.results += [(result, row.at) for result in row.results if result.agent_id]
        self._keep_time(row)
        did.ending = _after(did.ending, row)

    def _use_tool(self, call: Call, at: datetime | None) -> None:
        did = self.did
        if not self._is_new(call.tool_use_id):
            return
        did.n_tools += 1
        did.n_commands += call.name in COMMAND_TOOLS
        if call.name in EDIT_TOOLS:
            did.n_edits += 1
            if at is not None:
                did.edit_times.append(at)
        if call.name in SPAWN_TOOLS:
            did.spawns[call.tool_use_id] = call
        if call.name in PERSON_TOOLS:
            self._asked_person.add(call.tool_use_id)

    def _keep_time(self, row: Row) -> None:
        """A turn runs from its prompt to its last row; waiting for a person is no work."""
        did = self.did
        if row.meta or row.prompt == "local":
            return
        if row.prompt is not None and did.prompt_hash is None:
            did.prompt_hash = row.prompt_hash
        if row.prompt == "human":
            if self._is_new(row.uuid):
                self._start_turn(row.at)
        elif row.prompt == "command":
            did.command_at = row.at
        elif row.prompt == "machine" or any(
            result.tool_use_id in self._asked_person for result in row.results
        ):
            self._work_from(row.at)
        else:
            if row.answer is not None and did.command_at is not None:
                self._start_turn(did.command_at)
            self._work_until(row.at)

    def _start_turn(self, at: datetime | None) -> None:
        self.did.n_prompts += 1
        self.did.command_at = None
        if at is not None:
            self.did.turn_starts.append(at)
            self._work_from(at)

    def _work_from(self, at: datetime | None) -> None:
        if at is not None:
            self.did.intervals.append([at, at])

    def _work_until(self, at: datetime | None) -> None:
        if at is None:
            return
        if not self.did.intervals:
            self._work_from(at)
        newest = self.did.intervals[-1]
        newest[1] = max(newest[1], at)

    def _is_new(self, identifier: str | None) -> bool:
        if identifier is None:
            return True
        known = identifier in self._seen
        self._seen.add(identifier)
        return not known

    def turn_end(self, at: datetime | None) -> datetime | None:
        """End of the interval of work an instant lies in; the instant itself if in none."""
        if at is None:
            return None
        return next((end for start, end in self.did.intervals if start <= at <= end), at)

    def repair(self, last: Usage, told_at: datetime | None) -> None:
        """Correct the output of the last response by what the caller was told of it.

        The row of a helper's last response often holds the output of its first moment; the
        result its caller got has the final number. It is used only if the prompt is the same.
        """
        response = self.responses.last_before(told_at)
        if response is None or response.best.usage is None:
            return
        known = response.best.usage
        if known.prompt == last.prompt and known.tokens.output <= last.tokens.output:
            response.best.usage = last
            response.best.finished = True

    def trace(self, requests: list[Request]) -> AgentTrace:
        """The record all formats share, without what only other agents know of it."""
        did = self.did
        return AgentTrace(
            agent_id=self.agent_id,
            requests=requests,
            intervals=merged(did.intervals),
            started_at=did.first_at,
            edit_times=did.edit_times,
            n_edits=did.n_edits,
            n_commands=did.n_commands,
            n_tools=did.n_tools,
            waited_s=did.waited_s,
            damaged_lines=self.damaged_lines,
        )


def merged(intervals: list[list[datetime]]) -> list[tuple[datetime, datetime]]:
    """The same time as intervals that do not overlap, sorted."""
    result: list[tuple[datetime, datetime]] = []
    for start, end in sorted(intervals):
        if result and start < result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return result


def _after(ending: Status | None, row: Row) -> Status | None:
    if row.interrupted:
        return "cancelled"
    if row.api_error:
        return "failed"
    if row.prompt in ("command", "local") or row.meta:
        return ending
    if row.kind == "user":
        return None
    if row.stop_reason in ("end_turn", "stop_sequence"):
        return "done"
    silent = row.stop_reason is None and not row.calls
    return "unknown" if silent else None


def _after_system(ending: Status | None, row: Row) -> Status | None:
    """Old versions log no stop reason, but say when a turn is over."""
    return "done" if row.turn_over and ending == "unknown" else ending
