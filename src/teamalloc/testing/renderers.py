"""The contract of renderers."""

from __future__ import annotations

from teamalloc.reports.renderers import Renderer
from teamalloc.reports.report import Facts, Report, Section, Table, Text
from teamalloc.testing.contract import require

TEXT, FACT, CELL = "a paragraph", "a fact", "a cell"


def check_renderer(renderer: Renderer) -> None:
    """Check a renderer on a report with one of everything, and on an empty one.

    What must hold: it has a name; it renders text that ends in one newline and is the same twice;
    whatever the report says can be found in it, as data or as blocks; an empty report is no error.

    Raises:
        ContractBroken: with what was found.
    """
    require(bool(renderer.name), "it has no name")
    require(not renderer.suffix or renderer.suffix.startswith("."), f"suffix {renderer.suffix!r}")
    blocks = (Text(TEXT), Facts((("word", FACT),)), Table(("head", "number>"), ((CELL, "1"),)))
    data = {"text": TEXT, "fact": FACT, "cell": CELL}
    report = Report("title", (Section("heading", blocks),), data)
    text = renderer.render(report)
    require(text.endswith("\n") and not text.endswith("\n\n"), f"it ends in {text[-3:]!r}")
    require(renderer.render(report) == text, "it renders the same report differently")
    for said in (TEXT, FACT, CELL):
        require(said in text, f"{said!r} is missing")
    require(renderer.render(Report("title", ())).endswith("\n"), "an empty report has no end")
