"""A report as Markdown."""

from __future__ import annotations

import re
from functools import singledispatchmethod

from teamalloc.reports.report import Block, Facts, Report, Table, Text

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#])")


def escape(text: str) -> str:
    """Text that Markdown (and HTML within it) takes literally, in one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


class Markdown:
    """For sharing: headings, lists, tables."""

    name = "markdown"
    suffix = ".md"

    def render(self, report: Report) -> str:
        """The whole report."""
        parts = [f"# {escape(report.title)}"]
        for section in report.sections:
            if section.heading:
                parts.append(f"## {escape(section.heading)}")
            parts += [self._block(block) for block in section.blocks]
        return "\n\n".join(parts) + "\n"

    @singledispatchmethod
    def _block(self, block: Block) -> str:
        raise TypeError(type(block))

    @_block.register
    def _(self, block: Text) -> str:
        return escape(block.text)

    @_block.register
    def _(self, block: Facts) -> str:
        return "\n".join(f"- **{escape(word)}**: {escape(fact)}" for word, fact in block.rows)

    @_block.register
    def _(self, block: Table) -> str:
        head = [cell.removesuffix(">") for cell in block.head]
        rule = ["---:" if cell.endswith(">") else "---" for cell in block.head]
        rows = [[escape(cell) for cell in row] for row in block.rows]
        return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *rows])
