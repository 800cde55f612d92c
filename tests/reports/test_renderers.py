"""Renderers show what a report holds, and nothing that a name in a log could smuggle in."""

from __future__ import annotations

import json

import pytest

from teamalloc.reports.renderers import renderers
from teamalloc.reports.renderers.terminal import Terminal
from teamalloc.reports.report import Facts, Report, Section, Table, Text
from teamalloc.reports.sections import usd
from teamalloc.testing import check_renderer

HOSTILE = "<script>alert(1)</script> | a*b_c` [x](y)\n# \x1b[2J"
REPORT = Report(
    "Title",
    (
        Section("One", (Text("words " * 40), Facts((("a", "1"), ("long word", HOSTILE))))),
        Section("", (Table(("left", "right>"), (("x", "1.5"), (HOSTILE, "10"))),)),
    ),
    {"answer": 42, "text": HOSTILE},
)


@pytest.mark.parametrize("name", sorted(renderers()))
def test_contract(name: str) -> None:
    check_renderer(renderers()[name])


def test_markdown_escapes_html_and_tables() -> None:
    text = renderers()["markdown"].render(REPORT)
    assert "<script>" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4
    assert all(row.replace("\\|", "").count("|") == 3 for row in rows)


def test_the_terminal_gets_no_escapes_and_no_long_lines() -> None:
    text = Terminal(width=80).render(REPORT)
    assert "\x1b" not in text
    assert all(len(line) <= 80 for line in text.splitlines() if "script" not in line)
    assert "\nleft" in text


def test_json_is_the_data() -> None:
    assert json.loads(renderers()["json"].render(REPORT)) == REPORT.data


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "$0"),
        (0.0000123, "$1.2e-05"),
        (0.0123, "$0.0123"),
        (3.456, "$3.46"),
        (12345.6, "$12,346"),
    ],
)
def test_dollars_have_sensible_digits(value: float, shown: str) -> None:
    assert usd(value) == shown
