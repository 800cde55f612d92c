"""The column map of a table (``table.py`` describes the file)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from teamalloc.data.team import ROLES, STAGES, Role
from teamalloc.errors import BadLog, UnknownName

UNITS: Mapping[str, tuple[str, ...]] = {
    "reward": ("fraction", "percent"),
    "cost_usd": ("usd", "cents"),
    "latency": ("s", "ms", "min", "h"),
    "started_at": ("iso", "unix_s", "unix_ms"),
}
FIELDS = (
    "task",
    "session",
    "team",
    "mode",
    "reward",
    "cost_usd",
    "latency",
    "n_runs",
    "started_at",
    "assigned",
    "status",
    "client",
    "client_version",
)
KEYS = (
    *FIELDS,
    "lead",
    "lead_effort",
    *STAGES,
    "tokens",
    "tags",
    "models",
    "only",
    "missing",
    "delimiter",
)
SEAT_KEYS = ("model", "effort", "count")
TOKEN_ROLES = (*ROLES, "team")
TOKEN_KINDS = ("prompt", "fresh_input", "cache_read", "cache_write_5m", "cache_write_1h", "output")
CELL_KEYS = ("column", "value", "unit", "scale", "add", "per", "values")


@dataclass(frozen=True, slots=True)
class Cell:
    """Where a field's value comes from: a column, or a constant."""

    column: str | None = None
    value: str | None = None
    unit: str | None = None
    scale: Decimal = Decimal(1)
    add: Decimal = Decimal(0)
    per_all_runs: bool = False
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SeatMap:
    """Where a seat comes from."""

    model: Cell | None = None
    effort: Cell | None = None
    count: Cell | None = None


@dataclass(frozen=True, slots=True)
class TableMap:
    """A whole map."""

    cells: Mapping[str, Cell]
    lead: SeatMap
    helpers: Mapping[Role, tuple[SeatMap, ...]]
    tokens: Mapping[str, Mapping[str, Cell]]
    tags: Mapping[str, Cell]
    models: Mapping[str, str]
    only: Mapping[str, tuple[str, ...]]
    missing: tuple[str, ...]
    delimiter: str | None

    def seats(self, role: Role) -> tuple[SeatMap, ...]:
        """The helper seats of one stage."""
        return self.helpers.get(role, ())

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column the map names, once, in its order."""
        named = [cell.column for cell in self._cells() if cell.column is not None]
        return tuple(dict.fromkeys([*named, *self.only]))

    def _cells(self) -> Iterator[Cell]:
        yield from self.cells.values()
        for seat in (self.lead, *(s for seats in self.helpers.values() for s in seats)):
            yield from (cell for cell in (seat.model, seat.effort, seat.count) if cell)
        for kinds in self.tokens.values():
            yield from kinds.values()
        yield from self.tags.values()


class _BadMap(Exception):
    """What is wrong in a map."""


def read_map(path: Path) -> tuple[TableMap, bytes]:
    """Read a map file; also return its text.

    Raises:
        BadLog: it cannot be read, or a value in it is wrong.
        UnknownName: a key in it is unknown; lists those there are.
    """
    try:
        text = path.read_bytes()
        raw = tomllib.loads(text.decode("utf-8-sig"), parse_float=Decimal)
    except OSError as error:
        raise BadLog(path, f"the map cannot be read: {error.strerror or error}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadLog(path, f"not a map in TOML: {error}") from error
    try:
        return _map(raw, f"key in {path}"), text
    except _BadMap as error:
        raise BadLog(path, str(error)) from error


def _map(raw: Mapping[str, object], kind: str) -> TableMap:
    _known(raw, KEYS, kind)
    if "lead" not in raw and "team" not in raw:
        raise _BadMap("it does not say what the lead is: lead = COLUMN.")
    models = _table(raw, "models")
    tokens = _table(raw, "tokens")
    _known(tokens, TOKEN_ROLES, f"{kind}, tokens")
    return TableMap(
        cells={name: _cell(name, raw[name]) for name in FIELDS if name in raw},
        lead=SeatMap(_optional(raw, "lead"), _optional(raw, "lead_effort")),
        helpers={role: tuple(_seats(role, raw[role], kind)) for role in STAGES if role in raw},
        tokens={role: _token_cells(role, tokens, kind) for role in TOKEN_ROLES if role in tokens},
        tags={name: _cell(f"tags.{name}", cell) for name, cell in _table(raw, "tags").items()},
        models={name: _word(f"models.{name}", to) for name, to in models.items()},
        only={name: _words(f"only.{name}", to) for name, to in _table(raw, "only").items()},
        missing=_words("missing", raw.get("missing", [])),
        delimiter=_delimiter(raw.get("delimiter")),
    )


def _seats(role: Role, raw: object, kind: str) -> Iterator[SeatMap]:
    for part in raw if isinstance(raw, list) else [raw]:
        if not isinstance(part, dict):
            raise _BadMap(f"{role} is a table: [{role}] with model = COLUMN below it.")
        _known(part, SEAT_KEYS, f"{kind}, {role}")
        if "model" not in part:
            raise _BadMap(f"{role} has no model.")
        yield SeatMap(*(_optional(part, key, f"{role}.{key}") for key in SEAT_KEYS))


def _token_cells(role: str, tokens: Mapping[str, object], kind: str) -> Mapping[str, Cell]:
    kinds = _table(tokens, role)
    _known(kinds, TOKEN_KINDS, f"{kind}, tokens.{role}")
    if "prompt" in kinds and "fresh_input" in kinds:
        raise _BadMap(f"tokens.{role}: give prompt (all input) or fresh_input, not both.")
    return {name: _cell(f"tokens.{role}.{name}", cell) for name, cell in kinds.items()}


def _optional(raw: Mapping[str, object], key: str, name: str | None = None) -> Cell | None:
    return _cell(name or key, raw[key]) if key in raw else None


def _cell(name: str, raw: object) -> Cell:
    if isinstance(raw, str):
        return Cell(column=raw)
    if isinstance(raw, bool | int | Decimal):
        return Cell(value=_constant(raw))
    if not isinstance(raw, dict):
        raise _BadMap(f"{name} is a column's name, a number, or a table.")
    _known(raw, CELL_KEYS, f"key of {name} in the map")
    if ("column" in raw) == ("value" in raw):
        raise _BadMap(f"{name} needs a column or a value.")
    unit, units = raw.get("unit"), UNITS.get(name, ())
    if unit is not None and unit not in units:
        raise _BadMap(f"{name} has no unit {unit!r}; there are: {', '.join(units) or 'none'}.")
    if raw.get("per", "all_runs") != "all_runs":
        raise _BadMap(f'{name}: per is "all_runs" or left out.')
    values = _table(raw, "values")
    return Cell(
        column=_word(name, raw["column"]) if "column" in raw else None,
        value=_constant(raw["value"]) if "value" in raw else None,
        unit=unit,
        scale=_number(name, raw.get("scale", 1)),
        add=_number(name, raw.get("add", 0)),
        per_all_runs="per" in raw,
        values={text: _constant(to) for text, to in values.items()},
    )


def _constant(raw: object) -> str:
    if isinstance(raw, bool):
        return str(raw).lower()
    if isinstance(raw, str | int | Decimal):
        return str(raw)
    raise _BadMap(f"a constant is text, a number, true or false, not {raw!r}.")


def _number(name: str, raw: object) -> Decimal:
    if isinstance(raw, bool) or not isinstance(raw, int | Decimal) or not Decimal(raw).is_finite():
        raise _BadMap(f"{name}: scale and add are finite numbers, not {raw!r}.")
    return Decimal(raw)


def _word(name: str, raw: object) -> str:
    if not isinstance(raw, str) or not raw:
        raise _BadMap(f"{name} is text, not {raw!r}.")
    return raw


def _words(name: str, raw: object) -> tuple[str, ...]:
    if not isinstance(raw, list):
        raise _BadMap(f"{name} is a list of words, not {raw!r}.")
    return tuple(_constant(word) for word in raw)


def _delimiter(raw: object) -> str | None:
    if raw is not None and (not isinstance(raw, str) or len(raw) != 1):
        raise _BadMap(f"delimiter is one character, not {raw!r}.")
    return raw


def _table(raw: Mapping[str, object], key: str) -> Mapping[str, object]:
    table = raw.get(key, {})
    if not isinstance(table, dict):
        raise _BadMap(f"{key} is a table.")
    return table


def _known(raw: Mapping[str, object], keys: tuple[str, ...], kind: str) -> None:
    for key in raw:
        if key not in keys:
            raise UnknownName(kind, key, keys)
