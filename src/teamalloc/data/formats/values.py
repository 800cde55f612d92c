"""Values out of decoded JSON, each checked: a log may hold anything anywhere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

Json = Mapping[str, Any]

_MAX_WHOLE = 2**53


def inner(value: object, key: str) -> Json:
    """The object under ``key``; an empty one if there is none."""
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def items(value: object, key: str) -> list[Any]:
    """The list under ``key``; an empty one if there is none."""
    found = value.get(key) if isinstance(value, Mapping) else None
    return found if isinstance(found, list) else []


def objects(value: object, key: str) -> list[Json]:
    """The objects in the list under ``key``."""
    return [item for item in items(value, key) if isinstance(item, Mapping)]


def text(value: object) -> str | None:
    """Text that can be written out again (JSON may hold half a character); None if there is none."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) and value else None


def whole(value: object) -> int | None:
    """A whole number of at least 0; None for anything else."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < _MAX_WHOLE else None


def number(value: object) -> float | None:
    """A finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def seconds(value: object) -> float | None:
    """A finite number of at least 0; None for anything else."""
    found = number(value)
    return found if found is not None and found >= 0 else None


def dollars(value: object) -> Decimal | None:
    """A finite amount of at least 0, also if it is written as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and 0 <= amount < _MAX_WHOLE else None


def unix_instant(value: object, *, per_s: float = 1) -> datetime | None:
    """A Unix time, in seconds or (``per_s`` = 1000, 1e9) smaller parts; also written as text."""
    if isinstance(value, str):
        try:
            value = int(value) if value.isascii() and value.isdigit() else float(value)
        except ValueError:
            return None
    found = number(value)
    if found is None or found <= 0:
        return None
    try:
        return datetime.fromtimestamp(found / per_s, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def iso_instant(value: object) -> datetime | None:
    """An ISO 8601 time as an instant in UTC; without a zone it is taken as UTC."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
