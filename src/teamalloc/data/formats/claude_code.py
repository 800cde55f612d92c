"""Claude Code session files: a lead and its sub-agents.

files  ->  sessions, oldest first    claude_files.py
lines  ->  rows                      jsonl.py, claude_rows.py
rows   ->  agents                    claude_agents.py
agents ->  one session               claude_spawns.py, this file
"""

from __future__ import annotations

import hashlib
import heapq
import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from teamalloc.data.formats import AgentTrace, OnReject, Reject, Request, Session
from teamalloc.data.formats.claude_agents import AgentLog, Response, merged
from teamalloc.data.formats.claude_files import SessionFiles, companion, group, session_folders
from teamalloc.data.formats.claude_rows import Row, row_of
from teamalloc.data.formats.claude_spawns import Spawns
from teamalloc.data.formats.jsonl import Damage, records

LEAD = "lead"
OVERHEAD = ("acompact-", "aprompt_suggestion-", "aside_question-")
"agents the client starts for the lead's own sake: compaction, suggestions, side questions"
MAX_META_BYTES = 1 << 20

_SNIFF_LINES = 40
_ENVELOPE = (b'"sessionId"', b'"isSidechain"', b'"parentUuid"', b'"uuid"')
_SESSION_IDS = re.compile(rb'"sessionId"\s*:\s*"([^"]{1,80})"')
_TIMESTAMPS = re.compile(rb'"timestamp"\s*:\s*"([^"]{10,40})"')
_N_STARTS = 4
_BARE_TYPES = ("file-history-snapshot", "summary", "queue-operation")


class ClaudeCode:
    """Reader of Claude Code's ``projects`` folder; not of what ``claude -p`` prints."""

    name = "claude_code"
    version = 1

    def sniff(self, path: Path, head: bytes) -> bool:
        """Whether the first rows look like Claude Code's, or the file belongs to a session."""
        if companion(path):
            told = path.suffix == ".jsonl" or b'"agentType"' in head or b'"toolUseId"' in head
            return told and head.lstrip().startswith(b"{")
        if path.suffix != ".jsonl":
            return False
        lines = head.removeprefix(b"\xef\xbb\xbf").replace(b"\0", b"").split(b"\n")
        verdicts = map(_looks_like_row, lines[:_SNIFF_LINES])
        return next((verdict for verdict in verdicts if verdict is not None), False)

    def links(self, path: Path, head: bytes) -> tuple[str, ...]:
        """Sessions named by folder, file and first rows; a copy has the times of its original."""
        names = [path.stem, *session_folders(path)]
        names += [_decoded(name) for name in _SESSION_IDS.findall(head)]
        starts = [] if companion(path) else _TIMESTAMPS.findall(head)[:_N_STARTS]
        marks = [f"claude_code:{name}" for name in names]
        return tuple(dict.fromkeys(marks + [f"claude_code@{_decoded(at)}" for at in starts]))

    def read(self, paths: Sequence[Path], on_reject: OnReject) -> Iterator[Session]:
        """Yield one session for each root session id, the oldest first."""
        owned: dict[str, datetime | None] = {}
        waiting: list[tuple[datetime, int, Session]] = []
        "resumed sessions: they began later than the history they start with"
        for n, files in enumerate(group(paths, on_reject)):
            while waiting and waiting[0][0] <= files.first_at:
                yield heapq.heappop(waiting)[2]
            session = _SessionReader(files, owned, on_reject).read()
            if session is not None:
                heapq.heappush(waiting, (session.started_at or files.first_at, n, session))
        while waiting:
            yield heapq.heappop(waiting)[2]


def _looks_like_row(line: bytes) -> bool | None:
    """True or False where a line decides it, None where the next one has to."""
    line = line.strip()
    if not line:
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        # torn, or longer than the head: what can be seen of the envelope decides
        return True if sum(name in line for name in _ENVELOPE) >= 2 else None
    if not isinstance(record, dict):
        return False
    known = record.get("type") in _BARE_TYPES
    if "sessionId" in record:
        row = known or "uuid" in record or isinstance(record.get("message"), dict)
        return True if row else None
    if "session_id" in record or "payload" in record:
        return False
    return True if known or ("isSidechain" in record and "uuid" in record) else None


def _decoded(name: bytes) -> str:
    return name.decode("utf-8", "replace")


class _SessionReader:
    """Reads the files of one session and puts its agents together."""

    def __init__(
        self, files: SessionFiles, owned: dict[str, datetime | None], on_reject: OnReject
    ) -> None:
        self._files = files
        self._owned = owned
        "responses of all sessions so far, by key"
        self._on_reject = on_reject
        self._digest = hashlib.sha256()
        self._lead = AgentLog(LEAD)
        self._helpers: dict[str, AgentLog] = {}
        self._overhead: dict[str, AgentLog] = {}
        self._inline: dict[str, str] = {}
        "uuid of a sidechain row inside the lead's file -> agent it belongs to"
        self._facts: dict[str, str] = {}
        "as the first row of its own has them"
        self._claims: dict[str, dict[str, Response]] = {}
        "agent -> its responses by key"

    def read(self) -> Session | None:
        """The session; None if no model answered in it, or all of it belongs to others."""
        for path in self._files.mains:
            self._read_rows(path, self._lead, by_row=True)
        # The lead claims first: what a helper repeats of it stays the lead's.
        for log in (self._lead, *self._helpers.values(), *self._overhead.values()):
            self._claim(log)
        for agent_id, path in self._files.agents:
            log = self._log(agent_id)
            self._read_rows(path, log)
            self._claim(log)
        self._repair()
        metas = {agent: self._read_meta(path) for agent, path in self._files.metas.items()}
        helpers = self._helper_traces(metas)
        lead = self._lead_trace()
        if not any(agent.requests for agent in (lead, *helpers)):
            return None
        if not self._files.mains:
            lead.usage_missing = True
            lead.requests = [Request(key=None, at=None, model=None, tokens=None)]
        return self._session(lead, helpers)

    def _read_rows(self, path: Path, log: AgentLog, *, by_row: bool = False) -> None:
        damage = Damage()
        for _, record in records(path, self._on_reject, digest=self._digest, damage=damage):
            row = row_of(record)
            if row is None:
                continue
            foreign = row.session_id not in (None, self._files.session_id)
            agent = self._route(row) if by_row else log
            agent.add(row, self._owned, foreign=foreign)
            if not foreign and not row.forked:
                self._note_facts(record)
        log.damaged_lines += damage.n_lines

    def _log(self, agent_id: str) -> AgentLog:
        logs = self._overhead if agent_id.startswith(OVERHEAD) else self._helpers
        return logs.setdefault(agent_id, AgentLog(agent_id))

    def _route(self, row: Row) -> AgentLog:
        """The agent a row of the lead's file belongs to: old versions wrote helpers into it."""
        if row.agent_id is not None:
            return self._log(row.agent_id)
        if not row.sidechain:
            return self._lead
        agent_id = self._inline.get(row.parent_uuid or "")
        if agent_id is None and row.prompt is None and self._inline:
            agent_id = next(reversed(self._inline.values()))  # the row before it was lost
        if agent_id is None:
            agent_id = row.uuid or f"sidechain-{len(self._inline)}"
        self._inline[row.uuid or f"row-{len(self._inline)}"] = agent_id
        return self._log(agent_id)

    def _note_facts(self, record: dict[str, Any]) -> None:
        for name in ("cwd", "gitBranch", "version", "entrypoint", "teamName"):
            value = record.get(name)
            if name not in self._facts and isinstance(value, str) and value:
                self._facts[name] = value

    def _read_meta(self, path: Path) -> dict[str, Any]:
        try:
            with path.open("rb") as file:
                data = file.read(MAX_META_BYTES)
            self._digest.update(data)
            meta = json.loads(data)
        except OSError as error:
            self._on_reject(Reject(path, f"cannot be read: {error.strerror or error}"))
        except (ValueError, RecursionError):
            self._on_reject(Reject(path, "not JSON"))
        else:
            return meta if isinstance(meta, dict) else {}
        return {}

    def _claim(self, log: AgentLog) -> None:
        """Responses that belong to nobody yet are the agent's own from now on."""
        mine = self._claims.setdefault(log.agent_id, {})
        for key, response in log.responses.keyed():
            if key not in self._owned:
                mine[key] = response
                self._owned[key] = log.turn_end(response.at)
            elif key not in mine:
                for claims in self._claims.values():
                    if key in claims:
                        claims[key].take(response.best, response.at)

    def _repair(self) -> None:
        """Final outputs of the helpers' last responses, as their callers were told them."""
        for log in (self._lead, *self._helpers.values()):
            for result, at in log.did.results:
                helper = self._helpers.get(result.agent_id or "")
                if helper is not None and result.usage is not None:
                    helper.repair(result.usage, at)

    def _trace(self, log: AgentLog) -> AgentTrace:
        claims = self._claims[log.agent_id]
        return log.trace([response.request(key) for key, response in claims.items()])

    def _lead_trace(self) -> AgentTrace:
        trace = self._trace(self._lead)
        spans = [*self._lead.did.intervals]
        for log in self._overhead.values():
            extra = self._trace(log)
            trace.requests += extra.requests
            trace.damaged_lines += extra.damaged_lines
            spans += log.did.intervals if extra.requests else []
        trace.intervals = merged(spans)
        return trace

    def _helper_traces(self, metas: dict[str, dict[str, Any]]) -> list[AgentTrace]:
        spawns = Spawns((self._lead, *self._helpers.values()))
        inline = set(self._inline.values())
        traces = []
        for agent_id, origin in spawns.origins(self._helpers, metas, inline).items():
            trace = self._trace(self._helpers[agent_id])
            if trace.requests:
                trace.parent_id, trace.label = origin.parent_id, origin.label
                trace.asked_model = origin.asked_model
                traces.append(trace)
        traces += spawns.lost({*self._helpers, *self._overhead})
        present = {trace.agent_id for trace in traces}
        for trace in traces:
            if trace.parent_id not in present:
                trace.parent_id = LEAD
        return sorted(traces, key=_when)

    def _session(self, lead: AgentTrace, helpers: list[AgentTrace]) -> Session:
        did, facts = self._lead.did, self._facts
        logs = [self._lead, *(self._helpers[h.agent_id] for h in helpers if not h.usage_missing)]
        starts = [log.did.first_at for log in logs if log.did.first_at is not None]
        ends = [log.did.last_at for log in logs if log.did.last_at is not None]
        tags = {"entrypoint": facts["entrypoint"]} if "entrypoint" in facts else {}
        if "teamName" in facts:
            tags["agent_team"] = "yes"
        return Session(
            session_id=self._files.session_id,
            agents=[lead, *helpers],
            digest=self._digest.hexdigest(),
            n_prompts=max(1, did.n_prompts),
            turn_starts=did.turn_starts,
            started_at=min(starts, default=None),
            ended_at=max(ends, default=None),
            status=did.ending or "unknown",
            cwd=facts.get("cwd"),
            branch=facts.get("gitBranch"),
            client="claude_code",
            client_version=facts.get("version"),
            tags=tags,
        )


def _when(trace: AgentTrace) -> tuple[bool, str, str]:
    start = trace.started_at
    return start is None, "" if start is None else start.isoformat(), trace.agent_id
