"""A report as plain text for a terminal of 80 columns or more."""

from __future__ import annotations

import shutil
import textwrap
from functools import singledispatchmethod

from teamalloc.reports.report import Block, Facts, Report, Table, Text

LEAST, MOST = 60, 110


def printable(text: str) -> str:
    """Text without control characters: names come from logs, and a terminal obeys escapes."""
    return "".join(c if c.isprintable() else "?" for c in text)


class Terminal:
    """For people at a prompt: aligned, wrapped, nothing else."""

    name = "terminal"
    suffix = ".txt"

    def __init__(self, width: int | None = None) -> None:
        self._width = width

    def render(self, report: Report) -> str:
        """The whole report; the title is the first line."""
        parts = [self._wrap(report.title)]
        for section in report.sections:
            blocks = [self._block(block) for block in section.blocks]
            if section.heading:
                blocks.insert(0, section.heading)
            parts.append("\n".join(blocks))
        return "\n\n".join(parts) + "\n"

    def _columns(self) -> int:
        width = self._width or shutil.get_terminal_size((80, 24)).columns
        return min(max(width, LEAST), MOST)

    def _wrap(self, text: str, indent: str = "") -> str:
        return textwrap.fill(
            printable(text),
            self._columns(),
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )

    @singledispatchmethod
    def _block(self, block: Block) -> str:
        raise TypeError(type(block))

    @_block.register
    def _(self, block: Text) -> str:
        return self._wrap(block.text)

    @_block.register
    def _(self, block: Facts) -> str:
        width = max((len(word) for word, _ in block.rows), default=0) + 2
        return "\n".join(
            self._wrap(f"{word:<{width}}{fact}", " " * width) for word, fact in block.rows
        )

    @_block.register
    def _(self, block: Table) -> str:
        rows = [[cell.removesuffix(">") for cell in block.head]]
        rows += [[printable(cell) for cell in row] for row in block.rows]
        widths = [max(len(row[i]) for row in rows) for i in range(len(block.head))]
        lines = []
        for row in rows:
            cells = [
                cell.rjust(width) if head.endswith(">") else cell.ljust(width)
                for cell, width, head in zip(row, widths, block.head, strict=True)
            ]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)
