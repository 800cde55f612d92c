"""A report is plain data; renderers turn it into text, and tests check the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Words and what belongs to them, one line each."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as text; columns whose head ends in ``>`` are right-aligned."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Block = Text | Facts | Table


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it."""

    heading: str
    "empty = none"
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What is shown, and the same as data for machines."""

    title: str
    sections: tuple[Section, ...]
    data: Mapping[str, object] = field(default_factory=dict)
    "JSON-ready: what ``--json`` prints"
