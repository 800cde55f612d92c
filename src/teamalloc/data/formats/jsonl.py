"""Records of a JSON Lines log, whatever state the file is in.

Agent programs append to their logs, crash while they do, and write tool output of any size into
one line. So a log is read as bytes in chunks and split at ``\\n`` only (strings may hold U+2028),
a torn record costs itself and not the complete one glued behind it, and a line too long to hold
in memory is skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import msgspec

from teamalloc.data.formats import OnReject, Reject

CHUNK_BYTES = 1 << 20
MAX_LINE_BYTES = 64 << 20
"a longer line is skipped: decoding it would need several times its size"
HOPELESS_LINES = 20
"a file that starts with so many damaged lines and not one record is no log"
MAX_TORN_STARTS = 256
"places in one damaged line that may look like the start of a record and be none"

_BOM = b"\xef\xbb\xbf"


class Digest(Protocol):
    """What ``hashlib`` objects can do."""

    def update(self, data: bytes, /) -> None: ...


@dataclass(slots=True)
class Damage:
    """How many lines of a file were damaged, a cut last line included."""

    n_lines: int = 0


class _Line(NamedTuple):
    number: int
    body: bytes | None
    "without its end; None = too long to hold"
    n_bytes: int
    terminated: bool


def records(
    path: Path, on_reject: OnReject, *, digest: Digest | None = None, damage: Damage | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield ``(line number from 1, record)`` for every JSON object in the file.

    A damaged line goes to ``on_reject``, and so does a line of which only a part could be read.
    The cut last line of a file still being written is counted in ``damage`` but not rejected. A
    file that starts with ``HOPELESS_LINES`` damaged lines, or holds nothing else, is rejected once
    as a whole. ``digest`` is updated with every byte read; memory stays bounded by the longest
    line up to ``MAX_LINE_BYTES``.
    """
    damage = Damage() if damage is None else damage
    first: list[Reject] | None = []
    "rejects held back until the first record shows that this is a log at all"
    try:
        with path.open("rb") as file:
            for line in _lines(file, digest):
                found, reason = _read(line)
                if found and first is not None:
                    for reject in first:
                        on_reject(reject)
                    first = None
                if reason is not None:
                    damage.n_lines += 1
                    reject = Reject(path, reason, line.number)
                    if first is not None:
                        first.append(reject)
                        if len(first) >= HOPELESS_LINES:
                            break
                    elif line.terminated or line.body is None:
                        on_reject(reject)
                for record in found:
                    yield line.number, record
        if first:
            on_reject(_no_log(path, first[0]))
    except OSError as error:
        on_reject(Reject(path, f"cannot be read: {error.strerror or error}"))


def _lines(file: IO[bytes], digest: Digest | None) -> Iterator[_Line]:
    """Split at ``\\n``; of a line that grows too long only the length is kept."""
    number, n_bytes, parts = 1, 0, list[bytes]()
    while chunk := file.read(CHUNK_BYTES):
        if digest is not None:
            digest.update(chunk)
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            yield _line(number, [*parts, piece], n_bytes + len(piece), terminated=True)
            number, n_bytes, parts = number + 1, 0, []
        n_bytes += len(rest)
        parts = [*parts, rest] if n_bytes <= MAX_LINE_BYTES else []
    if n_bytes:
        yield _line(number, parts, n_bytes, terminated=False)


def _line(number: int, parts: list[bytes], n_bytes: int, *, terminated: bool) -> _Line:
    body = b"".join(parts) if n_bytes <= MAX_LINE_BYTES else None
    return _Line(number, body, n_bytes, terminated)


def _read(line: _Line) -> tuple[list[dict[str, Any]], str | None]:
    """The records in a line, and what is wrong with it (None = nothing)."""
    if line.body is None:
        return [], f"line of {line.n_bytes} bytes is longer than {MAX_LINE_BYTES}"
    body = line.body.replace(b"\0", b"").removeprefix(_BOM).strip()
    if not body:
        return [], None
    try:
        value = _decode(body)
    except (ValueError, RecursionError):
        found = list(_recover(body.decode("utf-8", "replace")))
        return found, "torn record, the rest of the line was read" if found else "not JSON"
    return ([value], None) if isinstance(value, dict) else ([], "not a JSON object")


def _decode(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        # The standard library also takes what some writers produce: NaN, bare control characters,
        # lone surrogates; and a replaced byte costs a character, not the record.
        return _mend(json.loads(body.decode("utf-8", "replace"), strict=False))


def _recover(text: str) -> Iterator[dict[str, Any]]:
    """Complete records in a line that also holds a torn one.

    An object that follows ``:``, ``,`` or ``[`` is a part of the torn record, not one of its own.
    """
    scan = json.JSONDecoder(strict=False).raw_decode
    at, n_torn = text.find('{"'), 0
    while at >= 0 and n_torn < MAX_TORN_STARTS:
        try:
            value, end = scan(text, at)
        except (ValueError, RecursionError):
            n_torn += 1
            end = at + 1
        else:
            if text[max(0, at - 8) : at].rstrip()[-1:] not in (":", ",", "["):
                yield _mend(value)
        at = text.find('{"', end)


def _mend(value: Any) -> Any:
    """Replace lone surrogates: legal in JSON escapes, impossible to write out again."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_mend(item) for item in value]
    if isinstance(value, dict):
        return {_mend(key): _mend(item) for key, item in value.items()}
    return value


def _no_log(path: Path, first: Reject) -> Reject:
    with path.open("rb") as file:
        head = file.read(1024)
    if any(byte < 9 or 13 < byte < 27 for byte in head.replace(b"\0", b"")):
        return Reject(path, "not text")
    return Reject(path, f"no JSON records in it (line {first.line}: {first.reason})")
