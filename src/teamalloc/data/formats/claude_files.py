"""Which files of a Claude Code folder make one session, and which session is the oldest.

<project>/<session>.jsonl                        the lead
<project>/<session>/subagents/**/agent-*.jsonl   one helper each, with agent-*.meta.json
<project>/agent-*.jsonl                          helpers of older versions: the rows name the session
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from teamalloc.data.formats import OnReject, Reject
from teamalloc.data.formats.claude_rows import instant, row_of
from teamalloc.data.formats.jsonl import records

TAIL_BYTES = 64 << 10

_AGENT = re.compile(r"agent-(.+)\.jsonl")
_TIMESTAMP = re.compile(rb'"timestamp":\s*"([^"]{10,40})"')
_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(slots=True)
class SessionFiles:
    """The files of one session."""

    session_id: str
    mains: list[Path] = field(default_factory=list)
    "the lead's rows; more than one if the session moved to another project folder"
    agents: list[tuple[str, Path]] = field(default_factory=list)
    "(agent id, its rows)"
    metas: dict[str, Path] = field(default_factory=dict)
    first_at: datetime = _NEVER
    "first row of its own"
    last_at: datetime = _NEVER


def companion(path: Path) -> bool:
    """Whether a file belongs to a session but holds no rows of it."""
    if "subagents" not in path.parts:
        return False
    is_meta = path.name.startswith("agent-") and path.name.endswith(".meta.json")
    return is_meta or path.name == "journal.jsonl"


def group(paths: Iterable[Path], on_reject: OnReject) -> list[SessionFiles]:
    """Sessions with their files, the oldest first.

    A resumed session begins with a copy of the old one, times included. So of two that start
    alike the one that ended first is the original.
    """
    sessions: dict[str, SessionFiles] = {}
    folders: dict[Path, str] = {}
    helpers = []
    for path in paths:
        if companion(path) or _AGENT.fullmatch(path.name):
            helpers.append(path)
            continue
        seen = _peek(path, on_reject)
        if seen is None:
            continue
        session_id, first_at = seen
        folders[path.with_suffix("")] = session_id
        session = sessions.setdefault(session_id, SessionFiles(session_id))
        session.mains.append(path)
        last_at = _last_instant(path) or first_at
        if session.first_at == _NEVER:
            session.first_at, session.last_at = first_at, last_at
        session.first_at = min(session.first_at, first_at)
        session.last_at = max(session.last_at, last_at)
    for path in helpers:
        _add_helper(path, sessions, folders, on_reject)
    return sorted(sessions.values(), key=lambda s: (s.first_at, s.last_at, s.session_id))


def _add_helper(
    path: Path, sessions: dict[str, SessionFiles], folders: dict[Path, str], on_reject: OnReject
) -> None:
    home = _session_folder(path)
    session_id = None if home is None else folders.get(home, home.name or None)
    first_at = _NEVER
    if not companion(path) and (session_id is None or session_id not in sessions):
        seen = _peek(path, on_reject)
        if seen is None:
            return
        first_at = seen[1]
        session_id = session_id or seen[0]
    if session_id is None:
        return
    session = sessions.setdefault(session_id, SessionFiles(session_id))
    if not session.mains:
        session.first_at = min(session.first_at, first_at)
    named = _AGENT.fullmatch(path.name)
    if path.name.endswith(".meta.json"):
        session.metas[path.name.removeprefix("agent-").removesuffix(".meta.json")] = path
    elif named:
        session.agents.append((named.group(1), path))


def session_folders(path: Path) -> list[str]:
    """Names a session may have by the folder of its helper's file."""
    home = _session_folder(path)
    return [] if home is None else [home.name]


def _session_folder(path: Path) -> Path | None:
    for parent in path.parents:
        if parent.name == "subagents":
            return parent.parent
    return None


def _peek(path: Path, on_reject: OnReject) -> tuple[str, datetime] | None:
    """Session id and the first instant of a row that is the session's own; None = no rows of one.

    A file is named after its session; rows that name another one were copied from it.
    """
    rejects: list[Reject] = []
    fallback: tuple[str, datetime] | None = None
    for _, record in records(path, rejects.append):
        row = row_of(record)
        if row is None or row.kind == "system" or row.at is None:
            continue
        session_id = row.session_id or path.stem
        if not row.forked and (session_id == path.stem or not _is_uuid(path.stem)):
            return session_id, row.at
        fallback = fallback or (session_id, row.at)
    if fallback is None:
        for reject in rejects:
            on_reject(reject)
    return fallback


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def _last_instant(path: Path) -> datetime | None:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL_BYTES))
            tail = file.read()
    except OSError:
        return None  # reading the session will say what is wrong with it
    found = (instant(match.decode("ascii", "replace")) for match in _TIMESTAMP.findall(tail))
    return max((at for at in found if at is not None), default=None)
