"""``allocate --budget …`` as a user would type it."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from conftest import Allocate

from teamalloc.data.records import decode_plan
from teamalloc.data.team import parse_team


def test_without_any_logs_it_answers_from_published_figures(
    allocate: Allocate, tmp_path: Path
) -> None:
    done = allocate("--budget", 50, "--max-latency", "30m")
    assert done.returncode == 0, done.stderr
    assert "no own runs: order of magnitude only" in done.stdout.splitlines()[0].lower()
    assert "allocate ingest" in " ".join(done.stdout.split())
    assert len(done.stdout.splitlines()) <= 40
    # Asking is reading: no store is made.
    assert not list((tmp_path / "home").rglob("*.sqlite"))


def test_an_answer_a_refusal_and_the_repair(allocate: Allocate, table: tuple[Path, Path]) -> None:
    assert allocate("ingest", table[0], "--map", table[1]).returncode == 0
    done = allocate("--budget", 5, "--max-latency", "1h", "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["verdict"] in ("better", "tie")
    assert data["notice"] is None
    assert data["best"]["cost_usd"]["p_ok"] >= 0.9
    assert data["best"]["latency_s"]["p_ok"] >= 0.9
    assert parse_team(data["best"]["team"]).lead.model == "gpt-5.6-sol"
    assert parse_team(data["baseline"]["team"]).is_solo
    assert data["evidence"]["n_usable"] == 40
    assert data["evidence"]["n_tasks"] == 10

    refused = allocate("--budget", 0.02, "--json")
    assert refused.returncode == 3
    data = json.loads(refused.stdout)
    assert data["verdict"] == "infeasible"
    budget = next(r["budget_usd"] for r in data["repairs"] if r["change"] == "budget")
    assert allocate("--budget", budget).returncode == 0


def test_the_same_store_and_seed_give_the_same_bytes(
    allocate: Allocate, environment: dict[str, str], table: tuple[Path, Path]
) -> None:
    allocate("ingest", table[0], "--map", table[1])
    asked = ["--budget", "5", "--max-latency", "1h", "--tasks", "3", "--parallel", "2", "--json"]
    answers = {
        subprocess.run(
            [sys.executable, "-c", "from teamalloc.cli import main; main()", *asked],
            env={**environment, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(answers) == 1
    assert len(answers.pop()) > 1000


def test_report_and_plan_are_written(
    allocate: Allocate, table: tuple[Path, Path], tmp_path: Path
) -> None:
    allocate("ingest", table[0], "--map", table[1])
    plan, report = tmp_path / "plan.json", tmp_path / "answer.md"
    done = allocate("--budget", 5, "--save", plan, "--report", report)
    assert done.returncode == 0, done.stderr
    saved = decode_plan(plan.read_bytes())
    assert str(saved.team) in done.stdout.replace("\n", " ")
    assert len(saved.forecasts) == len(saved.team.seats)
    text = report.read_text()
    for heading in ("Question", "Frontier", "Evidence", "Assumptions", "Versions and digests"):
        assert f"## {heading}" in text
    as_json = tmp_path / "answer.json"
    assert allocate("--budget", 5, "--report", as_json).returncode == 0
    assert json.loads(as_json.read_text())["versions"]["teamalloc"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--budget", "0"], "more than 0"),
        (["--budget", "-5"], "more than 0"),
        (["--budget", "nan"], "more than 0"),
        (["--max-latency", "banana"], "not a duration"),
        (["--budget", "5", "--max-verifiers", "5"], "at most 4 verifiers"),
        (["--budget", "5", "--max-planners", "17"], "at most 16 planners"),
        (["--budget", "5", "--confidence", "2"], "confidence"),
        (["--budget", "5", "--like", "nonsense"], "no tag"),
        (["--budget", "5", "--price-date", "yesterday"], "no date"),
        (["--budget", "5", "--lead", "a@"], "MODEL"),
        (["--budget", "5", "--report", "answer.pdf"], "cannot tell the form"),
        (["--budget", "5", "--report", "/nowhere/answer.md"], "cannot be written"),
        (["--budget", "many"], "many"),
        (["--unknown"], "--unknown"),
        ([], "no limit"),
    ],
)
def test_bad_input_is_exit_2_in_plain_words(
    allocate: Allocate, arguments: list[str], said: str
) -> None:
    done = allocate(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_latency_limit_without_latency_data_is_refused(
    allocate: Allocate, table: tuple[Path, Path]
) -> None:
    columns = table[1].read_text()
    table[1].write_text(
        "\n".join(line for line in columns.splitlines() if not line.startswith("latency"))
        .replace("gpt-5.6-sol", "my-sol")
        .replace("gpt-5.6-luna", "my-luna")
    )
    assert allocate("ingest", table[0], "--map", table[1]).returncode == 0
    done = allocate("--budget", 5, "--max-latency", "1h")
    assert done.returncode == 3
    assert "time" in done.stderr
    # The budget alone is no trouble: dollars were logged, though no price is known.
    assert allocate("--budget", 5).returncode == 0


def test_a_model_that_nobody_knows_is_refused(allocate: Allocate) -> None:
    done = allocate("--budget", 5, "--lead", "unheard-of")
    assert done.returncode == 3
    assert "nothing is known of unheard-of" in done.stderr


def test_stores_that_cannot_be_used(
    allocate: Allocate, tmp_path: Path, table: tuple[Path, Path]
) -> None:
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(b"this is no database" * 100)
    assert allocate("--budget", 5, "--store", broken).returncode == 6

    newer = tmp_path / "newer.sqlite"
    allocate("ingest", table[0], "--map", table[1], "--store", newer)
    with closing(sqlite3.connect(newer)) as connection:
        connection.execute("update alembic_version set version_num = '9999'")
        connection.commit()
    done = allocate("--budget", 5, "--store", newer)
    assert done.returncode == 6
    assert "newer" in done.stderr


def test_no_home_folder_is_said(allocate: Allocate) -> None:
    done = allocate("--budget", 5, HOME="/nonexistent")
    assert done.returncode == 6
    assert "--store" in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")  # noqa: PTH110
def test_a_full_disk_is_said(allocate: Allocate) -> None:
    done = allocate("--budget", 5, "--save", "/dev/full")
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


def test_help_has_examples_and_every_command(allocate: Allocate) -> None:
    done = allocate("--help")
    assert done.returncode == 0
    for word in (
        "allocate --budget 50 --max-latency 30m",
        "ingest",
        "reward",
        "fit",
        "runs",
        "--install-completion",
    ):
        assert word in done.stdout
    for command in ("ingest", "reward", "fit", "runs"):
        assert "Example" in allocate(command, "--help").stdout


def test_fit_shows_held_out_tasks_and_teams(allocate: Allocate, table: tuple[Path, Path]) -> None:
    allocate("ingest", table[0], "--map", table[1])
    done = allocate("fit")
    assert done.returncode == 0, done.stderr
    assert "10 tasks" in done.stdout
    assert "6 teams" in done.stdout
    data = json.loads(allocate("fit", "--json").stdout)
    assert {(c["target"], c["held_out"]) for c in data["checks"]} == {
        (t, h) for t in ("reward", "cost", "latency") for h in ("tasks", "teams")
    }
    assert allocate("fit", "--store", "none.sqlite").returncode == 6
