"""Our own log: one run a line, as ``allocate runs export --format jsonl`` writes it.

    {"teamalloc": 1, "run_id": "a1", "team": "lead=gpt-5.6-sol planner=gpt-5.6-luna*8 blocking",
     "task_id": "parser", "reward": 0.8, "total_reported_usd": "3.20", "active_s": 840}

Field names are those of ``Run`` (``data/run.py``), the tokens lie under each agent's ``usage``. For
a home-made log that is all: what is left out takes its default, ``team`` may be the one-line form,
and ``run_id`` may be left out too. A wrong value, or a name that no field has, is refused with the
path to it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from teamalloc.data.formats import OnReject, Reject, Session
from teamalloc.data.formats.jsonl import records
from teamalloc.data.records import decode_run, encode_run
from teamalloc.data.run import AgentRole, Run
from teamalloc.data.team import parse_team
from teamalloc.errors import BadInput

VERSION = 1
"of a row; raised when an older reader would misunderstand a new row"

_MARK = "teamalloc"
_CSV_ROLES: tuple[AgentRole, ...] = ("lead", "planner", "implementer", "verifier")
_CSV_KINDS = ("fresh_input", "cache_read", "cache_write_5m", "cache_write_1h", "output")

CSV_COLUMNS = (
    "run_id",
    "task_id",
    "started_at",
    "team",
    "reward",
    "cost_usd",
    "active_s",
    "n_runs",
    "assigned",
    "status",
    "client",
    *(f"tokens_{role}_{kind}" for role in _CSV_ROLES for kind in _CSV_KINDS),
)
"header of the flat export; ``docs/maps/export.toml`` reads it back"


def encode(run: Run) -> bytes:
    """One line, without its end; ``decode(encode(run)) == run``."""
    return b'{"%s":%d,' % (_MARK.encode(), VERSION) + encode_run(run)[1:]


def decode(line: bytes) -> Run:
    """The inverse of ``encode``; also reads home-made rows (see above).

    Raises:
        BadInput: not such a row, a wrong value (with the path to it), or a newer version.
    """
    try:
        row = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadInput(f"not JSON: {error}.") from error
    if not isinstance(row, dict):
        raise BadInput("not a JSON object.")
    return _decode_row(row)


def csv_row(run: Run) -> dict[str, str]:
    """The run as one flat row under ``CSV_COLUMNS``; unknown is empty."""
    cells: dict[str, Any] = {
        "run_id": run.run_id,
        "task_id": run.task_id,
        "started_at": run.started_at and run.started_at.isoformat(),
        "team": run.team,
        "reward": run.reward,
        "cost_usd": run.cost_usd,
        "active_s": run.active_s,
        "n_runs": run.n_runs,
        "assigned": "true" if run.assigned else "false",
        "status": run.status,
        "client": run.client,
    }
    for role in _CSV_ROLES:
        of_agents = [agent.tokens for agent in run.of_role(role) if agent.usage]
        for kind in _CSV_KINDS:
            known = [getattr(tokens, kind) for tokens in of_agents if tokens is not None]
            complete = known and len(known) == len(of_agents)
            cells[f"tokens_{role}_{kind}"] = sum(known) if complete else None
    return {
        column: ""
        if cells[column] is None
        else format(cells[column], "f")
        if column == "cost_usd"
        else str(cells[column])
        for column in CSV_COLUMNS
    }


class Native:
    """Reader of our own log."""

    name = "native"
    version = 1

    def sniff(self, path: Path, head: bytes) -> bool:
        """Whether the first row carries our mark."""
        first = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:65536].split(b"\n", 1)[0]
        return first.startswith(b"{") and f'"{_MARK}"'.encode() in first

    def links(self, path: Path, head: bytes) -> tuple[str, ...]:
        """None: each row is a run."""
        return ()

    def read(self, paths: Sequence[Path], on_reject: OnReject) -> Iterator[Session]:
        """Yield each row as a finished run."""
        for path in paths:
            for line, row in records(path, on_reject):
                try:
                    run = _decode_row(row)
                except BadInput as error:
                    on_reject(Reject(path, str(error), line))
                    continue
                yield Session(run.run_id, [], run.source.digest, run=run)


def _decode_row(row: dict[str, Any]) -> Run:
    version = row.get(_MARK)
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise BadInput(f"not a row of our own log: {_MARK!r} is {version!r}.")
    if version > VERSION:
        raise BadInput(
            f"written by a newer version of teamalloc (row version {version}, this one reads "
            f"{VERSION}).",
            remedy="Update teamalloc.",
        )
    if (path := _non_finite(row, "$")) is not None:
        raise BadInput(f"{path} is not a finite number.")
    fields = {name: value for name, value in row.items() if name != _MARK}
    digest = hashlib.sha256(msgspec.json.encode(fields, order="deterministic")).hexdigest()
    fields.setdefault("run_id", digest[:12])
    fields.setdefault(
        "source",
        {
            "format": Native.name,
            "reader_version": Native.version,
            "session_id": str(fields["run_id"]),
            "digest": digest,
        },
    )
    if isinstance(fields.setdefault("team", None), str):
        fields["team"] = asdict(parse_team(fields["team"]))
    run = decode_run(msgspec.json.encode(fields))
    if (path := _unknown(fields, msgspec.json.decode(encode_run(run)), "$")) is not None:
        raise BadInput(f"there is no field {path}.")
    return run


def _non_finite(value: Any, path: str) -> str | None:
    """Path to the first NaN or infinity: a lenient parser lets them through."""
    if isinstance(value, float):
        return None if math.isfinite(value) else path
    parts: Iterator[tuple[str, Any]] = iter(())
    if isinstance(value, Mapping):
        parts = ((f"{path}.{name}", part) for name, part in value.items())
    elif isinstance(value, list):
        parts = ((f"{path}[{i}]", part) for i, part in enumerate(value))
    return next((found for at, part in parts if (found := _non_finite(part, at))), None)


def _unknown(given: Any, known: Any, path: str) -> str | None:
    """Path to the first name in ``given`` that the record written out again does not have."""
    if isinstance(given, dict) and isinstance(known, dict):
        for name, part in given.items():
            if name not in known:
                return f"{path}.{name}"
            if found := _unknown(part, known[name], f"{path}.{name}"):
                return found
    elif isinstance(given, list | tuple) and isinstance(known, list) and len(given) == len(known):
        for i, (part, kept) in enumerate(zip(given, known, strict=True)):
            if found := _unknown(part, kept, f"{path}[{i}]"):
                return found
    return None
