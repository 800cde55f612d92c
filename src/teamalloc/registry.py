"""Look-up by name in a table of built-ins; an unknown name lists those there are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from teamalloc.errors import UnknownName

T = TypeVar("T")


def look_up(table: Mapping[str, T], name: str, *, kind: str) -> T:
    """Return ``table[name]``.

    Raises:
        UnknownName: with the names there are; ``kind`` is the word for them ("format").
    """
    try:
        return table[name]
    except KeyError:
        raise UnknownName(kind, name, table) from None
