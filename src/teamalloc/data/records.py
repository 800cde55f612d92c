"""Runs and plans as JSON bytes: what the store keeps, and what our own log format holds a line of.

The field names are those of the dataclasses. Money is a string ("0.0125"), so that no digit is
lost; instants are RFC 3339 with zone. JSON knows neither NaN nor infinity, and a null in their
place would read as "unknown": a record that holds one is refused, in either direction.
"""

from __future__ import annotations

import dataclasses
import math
import re
from decimal import Decimal
from typing import Any, TypeVar

import msgspec

from teamalloc.data.plan import Plan
from teamalloc.data.run import Run, Tokens
from teamalloc.errors import BadInput

T = TypeVar("T")

# JSON numbers are finite once they are read, but money is a string, which may say "NaN", "inf" or
# "1e9999999". Only text that might do so gets a look at every value.
_SUSPECT = re.compile(rb'"[\s+-]*(?:s?nan|inf|[\d._]+e\+?\d{3})|\\u', re.IGNORECASE)


def encode_run(run: Run) -> bytes:
    """One line of JSON; equal runs give equal bytes.

    Raises:
        BadInput: a number is NaN or infinite, or a string is not Unicode text.
    """
    return _encode(run)


def decode_run(body: bytes) -> Run:
    """The inverse of ``encode_run``.

    Raises:
        BadInput: the JSON is damaged or a value is wrong; the message says which (``$.agents[0]``).
    """
    return _decode(body, Run)


def encode_plan(plan: Plan) -> bytes:
    """One line of JSON; raises ``BadInput`` like ``encode_run``."""
    return _encode(plan)


def decode_plan(body: bytes) -> Plan:
    """The inverse of ``encode_plan``; raises ``BadInput`` like ``decode_run``."""
    return _decode(body, Plan)


def _encode(record: Run | Plan) -> bytes:
    _refuse_non_finite(record, "$")
    try:
        return msgspec.json.encode(record)
    except UnicodeError as error:
        raise BadInput(f"a string in this record is not Unicode text: {error}.") from error


def _decode(body: bytes, kind: type[T]) -> T:
    try:
        record = msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise BadInput(f"not a {kind.__name__.lower()} record: {error}.") from error
    if _SUSPECT.search(body):
        _refuse_non_finite(record, "$")
    return record


def _refuse_non_finite(value: Any, path: str) -> None:
    """Walk a record; raise ``BadInput`` with the path to the first NaN or infinity."""
    if isinstance(value, float | Decimal):
        if not math.isfinite(value):
            raise BadInput(f"{path} must be a finite number, not {value}.")
    elif isinstance(value, tuple):
        for i, part in enumerate(value):
            _refuse_non_finite(part, f"{path}[{i}]")
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            _refuse_non_finite(getattr(value, field.name), f"{path}.{field.name}")


def as_row(run: Run) -> dict[str, Any]:
    """The run as one flat row, for tables; money stays ``Decimal``, unknown is None."""
    tokens = run.tokens
    row: dict[str, Any] = {
        "run_id": run.run_id,
        "session_id": run.source.session_id,
        "format": run.source.format,
        "client": run.client,
        "started_at": run.started_at,
        "task_id": run.task_id,
        "team": None if run.team is None else str(run.team),
        "assigned": run.assigned,
        "status": run.status,
        "multi_turn": run.multi_turn,
        "n_runs": run.n_runs,
        "reward": run.reward,
        "reward_source": run.reward_source,
        "cost_usd": run.cost_usd,
        "active_s": run.active_s,
        "span_s": run.span_s,
    }
    for kind in dataclasses.fields(Tokens):
        row[f"{kind.name}_tok"] = None if tokens is None else getattr(tokens, kind.name)
    return row
