"""A price file: dated rows in TOML.

    [[price]]
    model = "gpt-5.6-sol"          # any spelling of the name
    from = 2026-08-21              # first UTC day; optional: since ever
    to = 2026-12-31                # last UTC day; optional: until further notice
    input = 4.00                   # US dollars for a million tokens
    cache_read = 0.40              # optional: as input
    cache_write_5m = 5.00          # optional: Claude 1.25 x input, others as input
    cache_write_1h = 5.00          # optional: Claude 2 x input, others as cache_write_5m
    output = 20.00
    above = 272_000                # optional: holds for prompts above this many tokens
    speed = "fast"                 # optional: holds for requests served at this speed
    service_tier = "priority"      # optional: holds for requests served in this tier
    source = "https://…"           # optional
    checked = 2026-12-01           # optional

Of the rows that hold on a day the one with the latest ``from`` counts. A row with ``above``
needs one without it. Whatever is wrong in such a file stops the command: a wrong price is worse
than none.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

from teamalloc.data.model_names import normalise_model
from teamalloc.data.rates import BASE_WORDS, Enquiry, Ladder, Rates, fill_rates
from teamalloc.errors import BadLog

_RATE_KEYS = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output")
_TEXT_KEYS = ("speed", "service_tier", "source")
_DATE_KEYS = ("from", "to", "checked")
_KEYS = ("model", *_RATE_KEYS, "above", *_TEXT_KEYS, *_DATE_KEYS)
_HEADER = re.compile(r"^\s*\[\[\s*price\s*\]\]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PriceRow:
    """One dated price of one model."""

    model: str
    first_day: date | None
    last_day: date | None
    above_tok: int
    speed: str | None
    service_tier: str | None
    rates: Rates

    def holds(self, enquiry: Enquiry) -> bool:
        """Whether this row is for that speed, tier and day; without a day only undated rows are."""
        if (self.speed, self.service_tier) != (enquiry.speed, enquiry.service_tier):
            return False
        if enquiry.at is None:
            return self.first_day is None and self.last_day is None
        day = enquiry.at.astimezone(UTC).date()
        return (self.first_day is None or self.first_day <= day) and (
            self.last_day is None or day <= self.last_day
        )


class PriceRows:
    """The rows of one price file, looked up by model."""

    def __init__(self, rows: Iterable[PriceRow] = ()) -> None:
        self._by_model: dict[str, list[PriceRow]] = {}
        for row in rows:
            self._by_model.setdefault(row.model.lower(), []).append(row)
        self._by_name: dict[str, list[PriceRow]] = {}
        for written, group in self._by_model.items():
            self._by_name.setdefault(normalise_model(written), []).extend(group)

    def ladder(self, enquiry: Enquiry) -> Ladder | None:
        """Rates by context tier, None if the file does not price this."""
        name = normalise_model(enquiry.model)
        as_written = self._by_model.get(enquiry.model.lower(), self._by_model.get(name))
        rows = self._by_name.get(name, []) if as_written is None else as_written
        if enquiry.at is None and any(row.first_day or row.last_day for row in rows):
            return None  # several prices over time, and no day to choose by
        chosen: dict[int, PriceRow] = {}
        for row in rows:
            if row.holds(enquiry):
                rival = chosen.get(row.above_tok)
                if rival is None or (row.first_day or date.min) >= (rival.first_day or date.min):
                    chosen[row.above_tok] = row
        return {start: row.rates for start, row in chosen.items()} if 0 in chosen else None


def read_price_rows(path: Path, text: bytes) -> PriceRows:
    """Read a price file; ``path`` is only named in messages.

    Raises:
        BadLog: with the row and the line of what is wrong.
    """
    try:
        decoded = text.decode("utf-8-sig")
        table = tomllib.loads(decoded, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadLog(path, f"not a price file in TOML: {error}") from error
    headers = [decoded.count("\n", 0, m.end()) + 1 for m in _HEADER.finditer(decoded)]
    raw_rows = table.pop("price", [])
    if table or not isinstance(raw_rows, list):
        odd = ", ".join(sorted(table)) or "price"
        raise BadLog(path, f"unexpected {odd}.", remedy="A price file holds [[price]] rows only.")
    rows = []
    for i, raw in enumerate(raw_rows):
        line = headers[i] if len(headers) == len(raw_rows) else None
        try:
            rows.append(_row(raw))
        except _BadRow as error:
            name = raw.get("model") if isinstance(raw, dict) else None
            raise BadLog(path, f"price row {i + 1} ({name}): {error}", line=line) from error
    _check_together(path, rows)
    return PriceRows(rows)


class _BadRow(Exception):
    """What is wrong in one row."""


def _row(raw: object) -> PriceRow:
    if not isinstance(raw, dict):
        raise _BadRow("is no table; write [[price]] above it.")
    if unknown := sorted(set(raw) - set(_KEYS)):
        raise _BadRow(f"unknown key {unknown[0]!r}; there are: {', '.join(_KEYS)}.")
    model = _text(raw, "model")
    if not model:
        raise _BadRow("model is missing.")
    numbers = {key: _usd(raw, key) for key in _RATE_KEYS}
    fresh_input, output = numbers["input"], numbers["output"]
    if fresh_input is None or output is None:
        raise _BadRow(f"{'input' if fresh_input is None else 'output'} is missing.")
    first, last = _day(raw, "from"), _day(raw, "to")
    _day(raw, "checked")
    if first is not None and last is not None and first > last:
        raise _BadRow(f"from {first} is after to {last}.")
    above = raw.get("above", 0)
    if isinstance(above, bool) or not isinstance(above, int) or above < 0:
        raise _BadRow(f"above must be a whole number of tokens, not {above!r}.")
    return PriceRow(
        model,
        first,
        last,
        above,
        base_to_none(_text(raw, "speed")),
        base_to_none(_text(raw, "service_tier")),
        fill_rates(
            normalise_model(model),
            fresh_input=fresh_input,
            output=output,
            cache_read=numbers["cache_read"],
            cache_write_5m=numbers["cache_write_5m"],
            cache_write_1h=numbers["cache_write_1h"],
        ),
    )


def base_to_none(word: str | None) -> str | None:
    """A speed or service tier in lower case; None for the words that change no price."""
    word = (word or "").strip().lower()
    return None if word in BASE_WORDS else word


def _usd(raw: Mapping[str, object], key: str) -> Decimal | None:
    value = raw.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise _BadRow(f"{key} must be a number, not {value!r}.")
    usd = Decimal(value)
    if not usd.is_finite() or usd < 0:
        raise _BadRow(f"{key} must be finite and not negative, not {value}.")
    return usd


def _text(raw: Mapping[str, object], key: str) -> str | None:
    value = raw.get(key)
    if value is not None and not isinstance(value, str):
        raise _BadRow(f"{key} must be text, not {value!r}.")
    return value


def _day(raw: Mapping[str, object], key: str) -> date | None:
    value = raw.get(key)
    if value is not None and (not isinstance(value, date) or isinstance(value, datetime)):
        raise _BadRow(f"{key} must be a date like 2026-12-01 without quotes, not {value!r}.")
    return value


def _check_together(path: Path, rows: Iterable[PriceRow]) -> None:
    """Refuse the same price twice and a context tier without a base row."""
    seen: set[tuple[object, ...]] = set()
    based: set[tuple[object, ...]] = set()
    for row in rows:
        kind = (row.model.lower(), row.speed, row.service_tier)
        key = (*kind, row.above_tok, row.first_day)
        if key in seen:
            since = row.first_day or "ever"
            raise BadLog(path, f"two prices of {row.model} above {row.above_tok} since {since}.")
        seen.add(key)
        if row.above_tok == 0:
            based.add(kind)
    for row in rows:
        if (row.model.lower(), row.speed, row.service_tier) not in based:
            raise BadLog(path, f"{row.model} has a row with above and none without it.")
