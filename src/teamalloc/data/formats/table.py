"""Any table of runs, one run a row, with a map that says which column is what.

A map is a TOML file. Each field of a run is given as the name of a column, as a constant, or as a
table with more to say:

    task = "task"                                        # the column "task"
    lead = { column = "executor" }                       # the same, longer
    n_runs = 75                                          # a number or true/false: a constant
    mode = { value = "blocking" }                        # a constant word
    reward = { column = "pass_pct", unit = "percent" }   # or scale = 0.01, add = 0
    cost_usd = { column = "total", per = "all_runs" }    # the cell is the total of n_runs runs
    latency = { column = "minutes", unit = "min" }       # s (default), ms, min, h

    [planner]                      # likewise [implementer], [verifier]; [[planner]] for two tiers
    model = "planner"              # an empty cell or a count of 0 is no seat
    effort = { value = "high" }    # optional; also MODEL@EFFORT in the model's cell
    count = "n_planners"           # optional: 1

    [tokens.lead]                  # likewise tokens.planner …; tokens.team where roles are not told
    prompt = "tokens_in"           # all input; or fresh_input, cache_read, cache_write_5m, …_1h
    output = { column = "tokens_out", scale = 1e6 }

    [models]                       # names in the table -> names in the price book
    "Haiku-4.5" = "claude-haiku-4-5"

    [tags]
    benchmark = "benchmark"

    [only]                         # rows to read, if not all
    source = ["metrics_json", "hybrid_db"]

Others: lead_effort, team (the one-line form, instead of lead and seats), session (a unique id of
the row; else its content is), n_runs (the row is the mean of so many runs), started_at (ISO, or
unit = "unix_s"), assigned (default true: published designs set their teams), status, client,
client_version; missing = ["NA", "-"] (cells that mean "unknown", as empty ones do) and delimiter.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import get_args

from teamalloc.data.formats import AgentTrace, OnReject, Reject, Request, Session
from teamalloc.data.formats.jsonl import records
from teamalloc.data.formats.table_map import Cell, SeatMap, read_map
from teamalloc.data.prices import normalise_model
from teamalloc.data.reward_file import REWARD_WORDS
from teamalloc.data.run import AgentRole, Status, Tokens
from teamalloc.data.team import STAGES, Mode, Role, Seat, TeamConfig, parse_team
from teamalloc.errors import BadInput

SUFFIXES = (".csv", ".tsv", ".jsonl")

_SECONDS = {"s": Decimal(1), "ms": Decimal("0.001"), "min": Decimal(60), "h": Decimal(3600)}
_USD = {"usd": Decimal(1), "cents": Decimal("0.01")}
_REWARD = {"fraction": Decimal(1), "percent": Decimal("0.01")}
_TRUE_FALSE = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_PROMPT_PARTS = ("cache_read", "cache_write_5m", "cache_write_1h")

Row = Mapping[str, str]


class Table:
    """Reader of tables under one column map."""

    name = "table"
    version = 1

    def __init__(self, map_path: Path) -> None:
        """Read the map.

        Raises:
            BadLog: the map cannot be read or a value in it is wrong.
            UnknownName: a key in it is unknown; lists those there are.
        """
        self.map, self._map_text = read_map(map_path)

    def sniff(self, path: Path, head: bytes) -> bool:
        """Whether it is a table by its name, with at least one of the columns of the map.

        One that lacks only some of them is taken, so that ``read`` can say which.
        """
        suffix = path.suffix.lower()
        if suffix not in SUFFIXES or b"\0" in head:
            return False
        first = head.lstrip(b"\xef\xbb\xbf \t\r\n").split(b"\n", 1)[0].decode("utf-8", "replace")
        if suffix == ".jsonl":
            return first.startswith("{") and any(f'"{name}"' in first for name in self.map.columns)
        header = {
            name.strip() for name in next(csv.reader([first], delimiter=self._delimiter(path)))
        }
        return not header.isdisjoint(self.map.columns)

    def links(self, path: Path, head: bytes) -> tuple[str, ...]:
        """All tables of one map: rows of a run may lie in several files."""
        return ("table",)

    def read(self, paths: Sequence[Path], on_reject: OnReject) -> Iterator[Session]:
        """Yield each row as a session; a table that lacks a column of the map is rejected."""
        occurrences: Counter[str] = Counter()
        sessions: set[str] = set()
        for path in paths:
            for line, row in self._rows(path, on_reject):
                if not self._wanted(row):
                    continue
                content = hashlib.sha256(json.dumps(row, sort_keys=True).encode()).hexdigest()
                occurrences[content] += 1
                try:
                    given = self._text(self.map.cells.get("session"), row)
                    if given in sessions:
                        raise BadInput(f"session {given!r} is in the table already.")
                    session = self._session(row, given or f"{content[:16]}-{occurrences[content]}")
                except BadInput as error:
                    on_reject(Reject(path, str(error), line))
                    continue
                if given is not None:
                    sessions.add(given)
                session.digest = hashlib.sha256(self._map_text + content.encode()).hexdigest()
                yield session

    # --- rows -------------------------------------------------------------------------------------

    def _rows(self, path: Path, on_reject: OnReject) -> Iterator[tuple[int, Row]]:
        if path.suffix.lower() == ".jsonl":
            yield from self._json_rows(path, on_reject)
            return
        delimiter = self._delimiter(path)
        try:
            with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
                reader = csv.reader(file, delimiter=delimiter)
                header = [name.strip() for name in next(reader, [])]
                wrong = self._wrong_header(header)
                if wrong is not None:
                    on_reject(Reject(path, wrong, 1))
                    return
                yield from _csv_rows(path, reader, header, on_reject)
        except (OSError, csv.Error) as error:
            on_reject(Reject(path, f"cannot be read as a table: {error}"))

    def _delimiter(self, path: Path) -> str:
        return self.map.delimiter or ("\t" if path.suffix.lower() == ".tsv" else ",")

    def _json_rows(self, path: Path, on_reject: OnReject) -> Iterator[tuple[int, Row]]:
        for line, record in records(path, on_reject):
            if any(isinstance(value, dict | list) for value in record.values()):
                on_reject(
                    Reject(path, "not a flat row: a value in it is a list or an object", line)
                )
                continue
            yield line, {key: _cell_text(value) for key, value in record.items()}

    def _wrong_header(self, header: Sequence[str]) -> str | None:
        twice = sorted(name for name, n in Counter(header).items() if n > 1)
        if twice:
            return f"two columns are called {twice[0]!r}"
        missing = [name for name in self.map.columns if name not in header]
        if missing:
            return (
                f"the map names columns that are not there: {', '.join(missing)}; "
                f"there are: {', '.join(header)}"
            )
        return None

    def _wanted(self, row: Row) -> bool:
        return all(row.get(column, "") in values for column, values in self.map.only.items())

    # --- one row ----------------------------------------------------------------------------------

    def _session(self, row: Row, session_id: str) -> Session:
        cells = self.map.cells
        n_runs = _whole("n_runs", self._number("n_runs", cells.get("n_runs"), row), least=1) or 1
        team = self._team(row)
        started_at = self._instant(row)
        cost_usd = self._quantity("cost_usd", row, n_runs, _USD)
        latency_s = self._quantity("latency", row, n_runs, _SECONDS)
        reward = self._reward(row)
        assigned = self._text(cells.get("assigned"), row)
        if assigned is not None and assigned.lower() not in _TRUE_FALSE:
            raise BadInput(f"assigned is true or false, not {assigned!r}.")
        tags = {name: self._text(cell, row) for name, cell in self.map.tags.items()}
        return Session(
            session_id,
            list(self._agents(row, team, started_at, n_runs)),
            digest="",
            started_at=started_at,
            status=self._status(row),
            task=self._text(cells.get("task"), row),
            reward=reward,
            reward_source=None if reward is None else "log",
            total_reported_usd=cost_usd,
            assigned=True if assigned is None else _TRUE_FALSE[assigned.lower()],
            client=self._text(cells.get("client"), row),
            client_version=self._text(cells.get("client_version"), row),
            tags={name: text for name, text in tags.items() if text is not None},
            active_s=None if latency_s is None else float(latency_s),
            team=team,
            n_runs=n_runs,
        )

    def _team(self, row: Row) -> TeamConfig:
        written = self._text(self.map.cells.get("team"), row)
        if written is not None:
            return parse_team(written)
        lead = self._seat("lead", self.map.lead, row)
        if lead is None:
            raise BadInput("the row names no lead.")
        seats = [self._seat(role, seat, row) for role in STAGES for seat in self.map.seats(role)]
        mode = self._text(self.map.cells.get("mode"), row) or "blocking"
        if mode not in get_args(Mode):
            raise BadInput(f"the mode is {' or '.join(get_args(Mode))}, not {mode!r}.")
        helpers = tuple(seat for seat in seats if seat is not None)
        return TeamConfig(lead, helpers, "async" if mode == "async" else "blocking")

    def _seat(self, role: Role, seat: SeatMap, row: Row) -> Seat | None:
        counted = self._number(f"count of {role}s", seat.count, row)
        count = _whole(f"count of {role}s", counted, least=0)
        who = self._text(seat.model, row)
        if count == 0 or (who is None and counted is None):
            return None
        if who is None:
            raise BadInput(f"the row counts {count} {role}s and does not name their model.")
        model, _, effort = who.partition("@")
        given = self._text(seat.effort, row)
        named = self.map.models.get(model, model)
        return Seat(role, normalise_model(named), count or 1, given or effort or None)

    def _agents(
        self, row: Row, team: TeamConfig, at: datetime | None, n_runs: int
    ) -> Iterator[AgentTrace]:
        """One record for each role the table has tokens of; the team says how many agents it is."""
        for role, kinds in self.map.tokens.items():
            amounts = {
                kind: self._number(f"{role} tokens", cell, row, n_runs)
                for kind, cell in kinds.items()
            }
            if all(amount is None for amount in amounts.values()):
                continue
            of_role = team.seats if role == "team" else _seats_of(team, role)
            if not of_role and not any(amounts.values()):
                continue
            missing = any(amount is None for amount in amounts.values())
            models = {seat.who: seat for seat in of_role}
            one = next(iter(models.values())) if len(models) == 1 else None
            trace_role: AgentRole = "unknown" if role == "team" else _stage(role)
            request = Request(
                key=None,
                at=at,
                model=one.model if one else None,
                tokens=None if missing else _tokens(role, amounts),
                effort=one.effort if one else None,
                n_calls=0,  # a sum over requests nobody counted
            )
            parent = None if role in ("lead", "team") else "lead"
            yield AgentTrace(role, parent, requests=[request], role=trace_role)

    # --- one cell ---------------------------------------------------------------------------------

    def _text(self, cell: Cell | None, row: Row) -> str | None:
        """The cell's text after the map's replacements; None if there is none."""
        if cell is None:
            return None
        if cell.column is None:
            return cell.value
        text = row.get(cell.column, "").strip()
        if not text or text in self.map.missing:
            return None
        return cell.values.get(text, text)

    def _number(self, what: str, cell: Cell | None, row: Row, n_runs: int = 1) -> Decimal | None:
        """A finite number, scaled and for one run."""
        text = self._text(cell, row)
        if cell is None or text is None:
            return None
        try:
            number = Decimal(text.removeprefix("$"))
        except InvalidOperation:
            raise BadInput(f"{what} is {text!r}, which is no number.") from None
        if not number.is_finite():
            raise BadInput(f"{what} must be a finite number, not {text}.")
        number = number * cell.scale + cell.add
        return number / n_runs if cell.per_all_runs else number

    def _quantity(
        self, field: str, row: Row, n_runs: int, units: Mapping[str, Decimal]
    ) -> Decimal | None:
        cell = self.map.cells.get(field)
        number = self._number(field, cell, row, n_runs)
        if cell is None or number is None:
            return None
        if number < 0:
            raise BadInput(f"{field} must not be negative, but is {number}.")
        return number * units[cell.unit or next(iter(units))]

    def _reward(self, row: Row) -> float | None:
        cell = self.map.cells.get("reward")
        word = self._text(cell, row)
        if cell is None or word is None:
            return None
        if word.lower() in REWARD_WORDS:
            return REWARD_WORDS[word.lower()]
        number = self._number("reward", cell, row) or Decimal(0)
        reward = float(number * _REWARD[cell.unit or "fraction"])
        if not 0.0 <= reward <= 1.0:
            hint = "" if cell.unit else ' (unit = "percent" in the map reads points of 100)'
            raise BadInput(f"a reward lies in [0, 1], not {reward:g}{hint}.")
        return reward

    def _instant(self, row: Row) -> datetime | None:
        cell = self.map.cells.get("started_at")
        text = self._text(cell, row)
        if cell is None or text is None:
            return None
        try:
            if cell.unit in ("unix_s", "unix_ms"):
                seconds = float(text) / (1000 if cell.unit == "unix_ms" else 1)
                return datetime.fromtimestamp(seconds, UTC)
            at = datetime.fromisoformat(text)
        except (ValueError, OverflowError, OSError):
            raise BadInput(f"started_at is {text!r}, which is no time.") from None
        return at if at.tzinfo is not None else at.replace(tzinfo=UTC)

    def _status(self, row: Row) -> Status:
        text = self._text(self.map.cells.get("status"), row)
        if text is None:
            return "done" if self._text(self.map.cells.get("reward"), row) else "unknown"
        for status in get_args(Status):
            if text == status:
                found: Status = status
                return found
        raise BadInput(f"status is {text!r}, not one of {', '.join(get_args(Status))}.")


def _csv_rows(
    path: Path, reader: Iterator[list[str]], header: Sequence[str], on_reject: OnReject
) -> Iterator[tuple[int, Row]]:
    line = 1
    while True:
        first = line_of(reader) + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            on_reject(Reject(path, f"cannot be read as a row: {error}", first))
            continue
        line = first
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            reason = f"{len(cells)} cells under {len(header)} column names"
            on_reject(Reject(path, reason, line))
            continue
        yield line, dict(zip(header, cells, strict=True))


def line_of(reader: object) -> int:
    """Lines a csv reader has read so far; its type does not say that it counts them."""
    n_lines = getattr(reader, "line_num", 0)
    return n_lines if isinstance(n_lines, int) else 0


def _cell_text(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _whole(what: str, number: Decimal | None, *, least: int) -> int | None:
    if number is None:
        return None
    if number != int(number) or number < least:
        raise BadInput(f"{what} must be a whole number of at least {least}, not {number}.")
    return int(number)


def _seats_of(team: TeamConfig, role: str) -> tuple[Seat, ...]:
    return tuple(seat for seat in team.seats if seat.role == role)


def _stage(word: str) -> Role:
    for role in ("lead", *STAGES):
        if role == word:
            stage: Role = role
            return stage
    raise BadInput(f"unknown role {word!r}.")


def _tokens(role: str, amounts: Mapping[str, Decimal | None]) -> Tokens:
    counts = {kind: round(amount or Decimal(0)) for kind, amount in amounts.items()}
    if (negative := next((kind for kind, n in counts.items() if n < 0), None)) is not None:
        raise BadInput(f"{role} {negative} tokens must not be negative.")
    prompt = counts.pop("prompt", None)
    if prompt is not None:
        cached = sum(counts.get(kind, 0) for kind in _PROMPT_PARTS)
        if cached > prompt:
            raise BadInput(f"{role}: {cached} cached tokens do not fit into {prompt} of input.")
        counts["fresh_input"] = prompt - cached
    return Tokens(**counts)
