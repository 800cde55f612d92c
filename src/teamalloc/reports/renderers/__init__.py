"""Renderers: one file each; a renderer turns a report into text.

To add a renderer: one file with a class that keeps the ``Renderer`` protocol, one line in
``renderers()``; ``teamalloc.testing.check_renderer`` is the contract it passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from teamalloc.reports.report import Report


class Renderer(Protocol):
    """Turns a report into text."""

    name: str
    suffix: str
    "of a file in this form; empty = not written to files"

    def render(self, report: Report) -> str:
        """The whole report, ending in a newline."""
        ...


def renderers() -> Mapping[str, Renderer]:
    """The built-in renderers by name."""
    from teamalloc.reports.renderers.json import Json
    from teamalloc.reports.renderers.markdown import Markdown
    from teamalloc.reports.renderers.terminal import Terminal

    table: tuple[Renderer, ...] = (Terminal(), Markdown(), Json())
    return {renderer.name: renderer for renderer in table}
