"""Logs that are one JSON document: read as a whole, up to a size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from teamalloc.data.formats import OnReject, Reject

MAX_BYTES = 512 << 20
"a larger document is refused: it must be held in memory as a whole"


def read_document(path: Path, on_reject: OnReject) -> tuple[bytes, Any] | None:
    """The bytes of a file and what they decode to; None, and a reject, if it is no JSON."""
    try:
        n_bytes = path.stat().st_size
        if n_bytes > MAX_BYTES:
            on_reject(Reject(path, f"document of {n_bytes} bytes is larger than {MAX_BYTES}"))
            return None
        body = path.read_bytes()
    except OSError as error:
        on_reject(Reject(path, f"cannot be read: {error.strerror or error}"))
        return None
    try:
        return body, decode(body)
    except ValueError as error:
        on_reject(Reject(path, f"not JSON, perhaps cut short: {error}"))
        return None


def decode(body: bytes) -> Any:
    """Decode JSON as loosely as its writers write it.

    Raises:
        ValueError: it is no JSON.
    """
    body = body.removeprefix(b"\xef\xbb\xbf")
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        try:
            # Python's own writer also writes NaN, which only Python's own reader takes.
            return json.loads(body.decode("utf-8", "replace"))
        except RecursionError as error:
            raise ValueError("nested too deeply") from error
