"""The contract of log formats."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import astuple
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from teamalloc.data.formats import AgentTrace, Format, Reject, Request, Session
from teamalloc.testing.contract import ContractBroken, require, require_amount, require_unique

HEAD_BYTES = 64 << 10
"how much of a file ``sniff`` is shown"

_FOREIGN = {
    "a picture": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00",
    "prose": b"Dear diary,\ntoday four agents shared one repository.\n",
    "a record of something else": b'{"colour": "green", "petals": 5}\n',
    "an empty list": b"[]\n",
    "an empty file": b"",
}
"what no reader may take for its own, whatever the file is called"


def check_format(reader: Format, paths: Sequence[Path], *, max_cuts: int | None = 32) -> None:
    """Check a log reader on logs of its format.

    What must hold: it knows its files and no foreign ones; two readings give equal sessions; the
    sessions are well formed (``check_sessions``); and a log that is cut or damaged at any byte is
    read as far as it goes, every complaint going through ``on_reject``.

    Args:
        reader: the reader.
        paths: logs with at least one session, laid out on disk as the client leaves them. Small
            ones: all are read ``2 * max_cuts`` times for each of them.
        max_cuts: places at which each file is cut and damaged, about half of them around the
            ends of lines; None = every byte.

    Raises:
        ContractBroken: with what was found.
    """
    paths = sorted(paths)
    require(bool(paths), "there are no files to check the reader on")
    _check_sniff(reader, paths)
    sessions = _read(reader, paths, "the logs as they are")
    require(bool(sessions), "the logs hold no session")
    again = _read(reader, paths, "the logs as they are")
    require(again == sessions, "a second reading gives other sessions")
    with tempfile.TemporaryDirectory() as folder:
        _check_damage(reader, _copy(paths, Path(folder)), max_cuts)


def check_sessions(sessions: Sequence[Session]) -> None:
    """Check what a reader yields, on whatever logs.

    What must hold: no session id twice, the oldest session first; digests are SHA-256 in hex;
    the lead is the first agent, every parent is an agent of the session; instants have a zone,
    intervals do not run backwards; no key of a request twice in a session; amounts are finite
    and not negative.

    Raises:
        ContractBroken: with the session and what is wrong in it.
    """
    require_unique([session.session_id for session in sessions], "session ids")
    for session in sessions:
        _check_session(session, f"session {session.session_id!r}")
    starts = [session.started_at for session in sessions if session.started_at is not None]
    for earlier, later in pairwise(starts):
        require(earlier <= later, f"a session of {earlier} comes before one of {later}")


def _check_session(session: Session, where: str) -> None:
    digest, reward = session.digest, session.reward
    # A finished run is taken as it is, and with it the digest of the log it once came from.
    is_digest = session.run is not None or re.fullmatch(r"[0-9a-f]{64}", digest) is not None
    require(is_digest, f"{where}: digest is {digest!r}")
    require(reward is None or 0.0 <= reward <= 1.0, f"{where}: reward is {reward!r}")
    require(session.n_runs >= 1, f"{where}: n_runs is {session.n_runs}")
    require(session.n_prompts >= 0, f"{where}: n_prompts is {session.n_prompts}")
    for name in ("active_s", "span_s", "total_reported_usd"):
        require_amount(getattr(session, name), f"{where}: {name}")
    for at in _instants(session):
        require(at.utcoffset() is not None, f"{where}: {at} has no time zone")
    _check_agents(session.agents, where)


def _check_agents(agents: Sequence[AgentTrace], where: str) -> None:
    ids = [agent.agent_id for agent in agents]
    require(ids[:1] in ([], ["lead"]), f"{where}: the first agent is {ids[:1]}, not the lead")
    require_unique(ids, f"{where}: agent ids")
    for agent in agents:
        who = f"{where}, agent {agent.agent_id!r}"
        parent = agent.parent_id
        require(parent is None or parent in ids, f"{who}: its parent {parent!r} is no agent here")
        require_amount(agent.waited_s, f"{who}: waited_s")
        for start, end in agent.intervals:
            require(start <= end, f"{who}: interval {start} to {end} runs backwards")
        for request in agent.requests:
            _check_request(request, who)
    keys = [request.key for agent in agents for request in agent.requests]
    require_unique([key for key in keys if key is not None], f"{where}: keys of requests")


def _check_request(request: Request, who: str) -> None:
    require(request.n_calls >= 1, f"{who}: a request of {request.n_calls} calls")
    require_amount(request.cost_reported_usd, f"{who}: cost_reported_usd")
    if request.tokens is not None:
        require(min(astuple(request.tokens)) >= 0, f"{who}: {request.tokens}")


def _instants(session: Session) -> Iterator[datetime]:
    yield from session.turn_starts
    single = [session.started_at, session.ended_at]
    for agent in session.agents:
        yield from agent.edit_times
        for interval in agent.intervals:
            yield from interval
        single += [agent.started_at, *(request.at for request in agent.requests)]
    yield from (at for at in single if at is not None)


def _check_sniff(reader: Format, paths: Sequence[Path]) -> None:
    for path in paths:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        require(reader.sniff(path, head), f"sniff does not know {path}")
        for what, foreign in _FOREIGN.items():
            require(not reader.sniff(path, foreign), f"sniff takes {what} named {path.name}")


def _check_damage(reader: Format, paths: Sequence[Path], max_cuts: int | None) -> None:
    for path in paths:
        whole = path.read_bytes()
        for at in _places(whole, max_cuts):
            cut = whole[:at]
            dented = cut + b"\xff" + whole[at + 1 :]
            for body, what in ((cut, "cut"), (dented, "damaged")):
                path.write_bytes(body)
                where = f"{path.name} {what} at byte {at}"
                try:
                    reader.sniff(path, body[:HEAD_BYTES])
                # Whatever a reader of somebody else raises is what this contract is about.
                except Exception as error:
                    raise ContractBroken(f"{where}: sniff raised {error!r}") from error
                _read(reader, paths, where)
        path.write_bytes(whole)


def _read(reader: Format, paths: Sequence[Path], where: str) -> list[Session]:
    """The sessions in these files, checked; ``where`` says which reading this is."""
    rejects: list[Reject] = []
    try:
        sessions = list(reader.read(paths, rejects.append))
        check_sessions(sessions)
    except ContractBroken as broken:
        raise ContractBroken(f"{where}: {broken}") from broken
    # Whatever a reader of somebody else raises is what this contract is about.
    except Exception as error:
        raise ContractBroken(f"{where}: read raised {error!r}") from error
    for reject in rejects:
        require(bool(reject.reason.strip()), f"{where}: a reject without a reason")
        require(reject.line is None or reject.line >= 1, f"{where}: line {reject.line} in {reject}")
    return sessions


def _places(body: bytes, max_cuts: int | None) -> list[int]:
    """Where to cut: spread evenly, and just before, at and behind the ends of lines."""
    if max_cuts is None or len(body) <= max_cuts:
        return list(range(len(body)))
    ends = [found.start() for found in re.finditer(rb"\n", body)]
    near = [at for end in _spread(ends, max_cuts // 6) for at in (end - 1, end, end + 1)]
    even = _spread(range(len(body)), max_cuts - len(near))
    return sorted({at for at in (*near, *even) if 0 <= at < len(body)})


def _spread(items: Sequence[int], n: int) -> list[int]:
    """At most ``n`` of the items, evenly spaced from the first on."""
    return [items[len(items) * i // n] for i in range(n)] if len(items) > n else list(items)


def _copy(paths: Sequence[Path], folder: Path) -> list[Path]:
    """Copies laid out as the originals are below the folder they have in common."""
    origin = os.path.commonpath([path.absolute().parent for path in paths])
    copies = []
    for path in paths:
        target = folder / path.absolute().relative_to(origin)
        target.parent.mkdir(parents=True, exist_ok=True)
        copies.append(Path(shutil.copyfile(path, target)))
    return copies
