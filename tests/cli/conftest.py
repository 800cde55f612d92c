"""The command as it is typed, with an empty home."""

from __future__ import annotations

import gc
import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from teamalloc.cli import main

Allocate = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables of a user who has just installed teamalloc."""
    home = tmp_path / "home"
    home.mkdir()
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "TEAMALLOC_"))}
    return {**kept, "HOME": str(home), "COLUMNS": "80"}


@pytest.fixture
def allocate(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Allocate]:
    """Run ``allocate`` with these arguments in an empty folder; in this process, to be quick."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in set(os.environ) - set(environment):
        monkeypatch.delenv(name)

    def run(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
        words = [str(argument) for argument in arguments]
        for name, value in {**environment, **variables}.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["allocate", *words])
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stop:
            main()
        code = stop.value.code
        assert isinstance(code, int)
        return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())

    yield run
    gc.enable()


@pytest.fixture
def table(tmp_path: Path) -> tuple[Path, Path]:
    """A CSV of 40 graded runs of six teams, and its map."""
    lines = ["task,lead,n,planner,score,usd,minutes"]
    teams = [("sol", 0, "", 60, 1.0, 10), ("sol", 4, "luna", 68, 1.6, 14), ("luna", 0, "", 40, 0.2, 6),
             ("sol", 8, "luna", 71, 2.2, 16), ("luna", 4, "luna", 46, 0.5, 9), ("sol", 2, "sol", 67, 2.4, 13)]  # fmt: skip
    for i in range(40):
        lead, n, planner, score, usd, minutes = teams[i % 6]
        size = 1.0 + 0.1 * (i % 5)
        lines.append(
            f"t{i % 10},{lead},{n},{planner},{score + i % 7},{usd * size:.3f},{minutes * size:.1f}"
        )
    rows = tmp_path / "table.csv"
    rows.write_text("\n".join(lines) + "\n")
    columns = tmp_path / "map.toml"
    columns.write_text(
        'task = "task"\nlead = "lead"\nreward = { column = "score", unit = "percent" }\n'
        'cost_usd = "usd"\nlatency = { column = "minutes", unit = "min" }\n'
        '[planner]\nmodel = "planner"\ncount = "n"\n'
        '[models]\nsol = "gpt-5.6-sol"\nluna = "gpt-5.6-luna"\n'
    )
    return rows, columns
