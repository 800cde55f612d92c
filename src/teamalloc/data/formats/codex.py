"""Codex rollouts: one file for each thread, the threads of one run joined over all files.

Which thread belongs to which run:

* A thread of the user's is a run of its own, a fork of another one too: what it repeats of the
  other's history belongs there.
* A thread that an agent started is an agent of the run at the root of the tree.
* Services of the client's own (review, compaction, guardian) are overhead of the lead: their
  requests are the lead's, with the model that answered them.
* If the file of the root is gone, its agents still are a run: named after the root, with a lead
  whose usage is missing.

The service tier that is logged is the one asked for, not the one served, so it is left unknown.
Compressed rollouts and the client's SQLite state are not read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from heapq import heappop, heappush
from itertools import islice
from pathlib import Path

from teamalloc.data.formats import AgentTrace, OnReject, Session
from teamalloc.data.formats.codex_rows import (
    ROW_TYPES,
    Call,
    Count,
    Edit,
    Meta,
    Record,
    Sign,
    Spawn,
    read_row,
)
from teamalloc.data.formats.codex_thread import (
    Thread,
    combine_digests,
    find_first_own,
    is_usage_missing,
    read_requests,
    read_thread,
    read_turns,
)
from teamalloc.data.formats.jsonl import records

_HEAD_ROWS = 20
"the head of a file is its first row, unless that one is damaged or an old client wrote none"
_HOMES = ("sessions", "archived_sessions")
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_LONG_HEAD = re.compile(rb'"type"\s*:\s*"session_meta"\s*,\s*"payload"\s*:\s*\{')


class Codex:
    """Reader of Codex rollouts."""

    name = "codex"
    version = 1

    def sniff(self, path: Path, head: bytes) -> bool:
        """Rows of timestamp, type and payload (``codex exec --json`` has none of the three)."""
        if path.suffix not in (".jsonl", ".json"):
            return False
        for line in head.split(b"\n")[:_HEAD_ROWS]:
            try:
                row = json.loads(line.decode("utf-8-sig", "replace"))
            except (ValueError, RecursionError):
                continue
            if isinstance(row, dict) and isinstance(row.get("payload"), dict):
                return str(row.get("type")) in ROW_TYPES
        # The first row holds the instructions and may be longer than what was handed in.
        return _LONG_HEAD.search(head) is not None

    def links(self, path: Path, head: bytes) -> tuple[str, ...]:
        """The thread, and those it came from."""
        return tuple(f"codex:{key}" for key in _read_head(path).linked)

    def read(self, paths: Sequence[Path], on_reject: OnReject) -> Iterator[Session]:
        """Yield one session for each root thread.

        Families of threads are read one by one. A session waits until no family that is still to
        be read can hold an older one.
        """
        heads = [_read_head(path) for path in paths]
        waiting: list[tuple[datetime, int, Session]] = []
        n_read = 0
        for family in _families(heads):
            while waiting and waiting[0][0] <= family[0].at:
                yield heappop(waiting)[2]
            for session in _Family(family, on_reject).sessions():
                heappush(waiting, (session.started_at or _LONG_AGO, n_read, session))
                n_read += 1
        while waiting:
            yield heappop(waiting)[2]


# ------------------------------------------------------------------------------- files and families


@dataclass(frozen=True, slots=True)
class _Head:
    """What the head of a file says."""

    path: Path
    home: Path
    "folder within which ids are unique"
    thread_id: str
    meta: Meta
    at: datetime

    def key(self, thread_id: str) -> str:
        """Identity of a thread: ids that are no UUIDs (fixtures, other writers) may occur twice."""
        return thread_id if _UUID.fullmatch(thread_id) else f"{thread_id}\0{self.home}"

    @property
    def linked(self) -> list[str]:
        """Keys of this thread and of those it must be read together with."""
        ids = [self.meta.parent_id, self.meta.forked_from]
        if self.meta.kind is not None:
            ids.append(self.meta.root_id)
        return [self.key(i) for i in (self.thread_id, *ids) if i is not None]

    @property
    def is_archived(self) -> bool:
        return "archived_sessions" in self.path.parts


def _read_head(path: Path) -> _Head:
    # Whatever is wrong with the file is reported when all of it is read.
    rows = [
        read_row(path, line, record)
        for line, record in islice(records(path, lambda _: None), _HEAD_ROWS)
    ]
    meta = next((row.content for row in rows if isinstance(row.content, Meta)), Meta())
    named = _UUID.findall(path.stem)
    thread_id = meta.thread_id or (named[-1] if named else path.stem)
    at = next((row.at for row in rows if row.at is not None), _LONG_AGO)
    return _Head(path, _home(path), thread_id, meta, at)


def _home(path: Path) -> Path:
    for folder in path.parents:
        if folder.name in _HOMES:
            return folder.parent
    return path.parent


def _families(heads: Sequence[_Head]) -> list[list[_Head]]:
    """Groups of files whose threads are related, the oldest first."""
    leader: dict[str, str] = {}

    def find(key: str) -> str:
        while (above := leader.setdefault(key, key)) != key:
            leader[key] = key = leader[above]
        return key

    for head in heads:
        first, *others = head.linked
        for other in others:
            leader[find(other)] = find(first)
    groups: dict[str, list[_Head]] = {}
    for head in sorted(heads, key=lambda head: (head.at, head.path)):
        groups.setdefault(find(head.linked[0]), []).append(head)
    return list(groups.values())


def _without_copies(heads: Iterable[_Head]) -> list[_Head]:
    """One file of each name: the longest, and of equal ones the active before the archived."""

    def rank(head: _Head) -> tuple[int, bool]:
        try:
            n_bytes = head.path.stat().st_size
        except OSError:
            n_bytes = 0
        return n_bytes, not head.is_archived

    best: dict[str, _Head] = {}
    for head in heads:
        other = best.get(head.path.name)
        if other is None or rank(head) > rank(other):
            best[head.path.name] = head
    return sorted(best.values(), key=lambda head: (head.at, head.path.name))


# ------------------------------------------------------------------------------- runs


@dataclass(slots=True)
class _Team:
    """The threads of one run."""

    root_id: str
    lead: Thread | None = None
    helpers: list[Thread] = field(default_factory=list)
    services: list[Thread] = field(default_factory=list)

    @property
    def threads(self) -> list[Thread]:
        return [*([self.lead] if self.lead else []), *self.helpers, *self.services]


class _Family:
    """Related threads, by key."""

    def __init__(self, heads: Sequence[_Head], on_reject: OnReject) -> None:
        self.on_reject = on_reject
        self.threads: dict[str, Thread] = {}
        self.heads: dict[str, _Head] = {}
        files: dict[str, list[_Head]] = {}
        for head in heads:
            files.setdefault(head.key(head.thread_id), []).append(head)
        for key, copies in files.items():
            parts = _without_copies(copies)
            self.heads[key] = parts[0]
            paths = [part.path for part in parts]
            self.threads[key] = read_thread(parts[0].thread_id, parts[0].meta, paths, on_reject)
        for key, thread in self.threads.items():
            thread.first_own = find_first_own(thread, *self._origins(key))

    def sessions(self) -> list[Session]:
        """The runs among these threads."""
        teams: dict[str, _Team] = {}
        for key, thread in self.threads.items():
            root, root_id = self._root(key)
            team = teams.setdefault(root, _Team(root_id))
            if key == root:
                team.lead = thread
            elif thread.meta.kind == "spawn":
                team.helpers.append(thread)
            else:
                team.services.append(thread)
        return [_session(team, self.on_reject) for team in teams.values() if _has_work(team)]

    def _origins(self, key: str) -> tuple[Thread | None, list[Thread]]:
        """The thread whose history this one may repeat; earlier ones that may repeat it too."""
        head = self.heads[key]
        origin = head.meta.forked_from or head.meta.parent_id
        if origin is None:
            return None, []
        earlier = list(self.threads)[: list(self.threads).index(key)]
        siblings = [
            self.threads[other]
            for other in earlier
            if origin in (self.heads[other].meta.forked_from, self.heads[other].meta.parent_id)
        ]
        parent = self.threads.get(head.key(origin))
        return None if parent is self.threads[key] else parent, siblings

    def _root(self, key: str) -> tuple[str, str]:
        """Key and id of the thread at the root of an agent's tree, be its file there or not."""
        seen: set[str] = set()
        root_id = self.heads[key].thread_id
        while key in self.threads and key not in seen:
            seen.add(key)
            head = self.heads[key]
            above = self._above(head)
            if above is None:
                break
            key, root_id = head.key(above), above
        return key, root_id

    def _above(self, head: _Head) -> str | None:
        """Id of the thread that a thread works for; of the root if its parent's file is gone."""
        meta = head.meta
        parent = meta.parent_id or meta.forked_from
        if meta.kind is None:
            return None
        if parent is not None and head.key(parent) in self.threads:
            return parent
        return next((i for i in (meta.root_id, parent) if i not in (None, head.thread_id)), None)


def _has_work(team: _Team) -> bool:
    """A thread that was opened and closed again is no run."""
    return any(read_turns(thread) for thread in team.threads)


def _session(team: _Team, on_reject: OnReject) -> Session:
    lead = team.lead
    asked = _asked_models(team.threads)
    helpers = [_helper(thread, team, asked, on_reject) for thread in team.helpers]
    turns = read_turns(lead) if lead else []
    prompted = [turn for turn in turns if turn.has_prompt] or turns
    workers = [thread for thread in team.threads if thread not in team.services]
    instants = [at for thread in workers for at in thread.instants]
    meta = (lead or team.threads[0]).meta
    return Session(
        session_id=_session_id(team),
        agents=[_lead(team, on_reject), *helpers],
        digest=combine_digests([thread.digest for thread in team.threads]),
        n_prompts=max(1, len(prompted)),
        turn_starts=[turn.start for turn in prompted],
        started_at=min(instants, default=None),
        ended_at=max(instants, default=None),
        status=turns[-1].status if turns else "unknown",
        cwd=meta.cwd,
        branch=meta.branch,
        client="codex",
        client_version=meta.client_version,
    )


def _session_id(team: _Team) -> str:
    """The root's id; one that is no UUID is told apart by how the run begins."""
    if _UUID.fullmatch(team.root_id):
        return team.root_id
    rows = [row for thread in team.threads for row in thread.rows]
    used = [row for row in rows if isinstance(row.content, Count | Record)]
    first = (used or rows)[0]
    mark = hashlib.sha256(f"{first.at} {first.content}".encode()).hexdigest()[:8]
    return f"{team.root_id}~{mark}"


def _lead(team: _Team, on_reject: OnReject) -> AgentTrace:
    if team.lead is None:
        trace = AgentTrace("lead", usage_missing=True)
    else:
        trace = _trace(team.lead, "lead", on_reject)
    for service in team.services:
        requests = read_requests(service, on_reject)
        trace.requests += requests
        trace.usage_missing = trace.usage_missing or is_usage_missing(service, requests)
        trace.damaged_lines += service.n_damaged
    return trace


def _helper(
    thread: Thread, team: _Team, asked: Mapping[str, str], on_reject: OnReject
) -> AgentTrace:
    trace = _trace(thread, thread.thread_id, on_reject)
    named = {other.thread_id for other in team.helpers}
    above = thread.meta.parent_id
    trace.parent_id = above if above in named else "lead"
    trace.label = thread.meta.label
    path = (thread.meta.agent_path or "").rpartition("/")[2]
    trace.asked_model = asked.get(thread.thread_id) or asked.get(path)
    return trace


def _trace(thread: Thread, agent_id: str, on_reject: OnReject) -> AgentTrace:
    """What one thread did; patches and commands as the client reports them, else as called."""
    requests = read_requests(thread, on_reject)
    edits: dict[str, datetime | None] = {}
    called: list[datetime | None] = []
    n_commands = n_called = n_tools = 0
    for row in thread.own:
        content = row.content
        if isinstance(content, Edit):
            edits[content.patch_id] = row.at
            if not content.worked:
                del edits[content.patch_id]
        elif isinstance(content, Call):
            n_tools += 1
            n_called += content.is_command
            called += [row.at] * content.is_edit
        elif isinstance(content, Spawn):
            n_tools += content.is_call
        elif content == Sign("command"):
            n_commands += 1
    is_reported = any(isinstance(row.content, Edit) for row in thread.own)
    changes = list(edits.values()) if is_reported else called
    return AgentTrace(
        agent_id,
        requests=requests,
        intervals=[(turn.start, turn.end) for turn in read_turns(thread)],
        started_at=min(thread.instants, default=None),
        edit_times=sorted(at for at in changes if at is not None),
        n_edits=len(changes),
        n_commands=max(n_commands, n_called),
        n_tools=n_tools,
        usage_missing=is_usage_missing(thread, requests),
        damaged_lines=thread.n_damaged,
    )


def _asked_models(threads: Sequence[Thread]) -> dict[str, str]:
    """Models asked for when agents were started, by thread id or last part of the agent's path.

    What the call itself names comes before what the client notes of it.
    """
    by_call: dict[str, str] = {}
    by_child: dict[str, str] = {}
    for row in (row for thread in threads for row in thread.own):
        spawn = row.content
        if not isinstance(spawn, Spawn):
            continue
        model = by_call.get(spawn.call_id or "") or spawn.model
        if model is not None and spawn.call_id is not None:
            by_call[spawn.call_id] = model
        if model is not None and spawn.child is not None:
            by_child.setdefault(spawn.child, model)
    return by_child
