"""``allocate ingest``, ``reward`` and ``runs`` as a user would type them."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import pytest
from conftest import Allocate

CASES = Path(__file__).parent.parent / "logs" / "bugcases"
SUBAGENTS = CASES / "06-claude-subagent-files" / "input"


def test_ingest_show_spend_and_reward(allocate: Allocate) -> None:
    first = allocate("ingest", SUBAGENTS)
    assert first.returncode == 0, first.stderr
    assert first.stdout.startswith("1 runs: 1 new, 0 updated, 0 unchanged; 0 graded;")
    assert allocate("ingest", SUBAGENTS).stdout.startswith("1 runs: 0 new, 0 updated, 1 unchanged")

    assert allocate("reward", "last", "0.8").returncode == 0
    run = json.loads(allocate("runs", "show", "last", "--json").stdout)
    assert run["reward"] == 0.8
    assert run["reward_source"] == "user"
    # Worked out by hand in the case's expected.json.
    assert Decimal(run["cost_usd"]) == Decimal("0.151075")
    shown = allocate("runs", "show", "last").stdout
    assert "Explore" in shown
    assert "claude-haiku-4-5" in shown

    spent = json.loads(allocate("runs", "spend", "--by", "model", "--json").stdout)
    assert Decimal(spent["total_usd"]) == Decimal("0.151075")
    assert sum(Decimal(part["cost_usd"]) for part in spent["parts"]) == Decimal("0.151075")
    assert {part["key"] for part in spent["parts"]} == {
        "claude-opus-5",
        "claude-haiku-4-5",
        "claude-sonnet-4-5",
    }


def test_export_is_read_back_without_loss(allocate: Allocate, tmp_path: Path) -> None:
    allocate("ingest", SUBAGENTS)
    allocate("reward", "last", "--pass")
    out = tmp_path / "runs.jsonl"
    assert allocate("runs", "export", "-o", out).returncode == 0
    other = tmp_path / "other.sqlite"
    assert allocate("ingest", out, "--store", other).returncode == 0
    again = allocate("runs", "export", "--store", other)
    assert json.loads(again.stdout) == json.loads(out.read_text())

    flat = tmp_path / "runs.csv"
    assert allocate("runs", "export", "--format", "csv", "-o", flat).returncode == 0
    with flat.open() as file:
        (row,) = csv.DictReader(file)
    assert Decimal(row["cost_usd"]) == Decimal("0.151075")
    columns = Path(__file__).parents[2] / "docs" / "maps" / "export.toml"
    third = tmp_path / "third.sqlite"
    assert allocate("ingest", flat, "--map", columns, "--store", third).returncode == 0
    run = json.loads(allocate("runs", "show", "last", "--json", "--store", third).stdout)
    assert run["reward"] == 1.0
    assert Decimal(run["cost_usd"]) == Decimal("0.151075")


def test_group_split_confirm_task_and_forget(allocate: Allocate, table: tuple[Path, Path]) -> None:
    for case in ("01-claude-content-blocks-repeat-usage", "16-idle-gap-is-not-latency"):
        allocate("ingest", CASES / case / "input")
    ids = [run["run_id"] for run in json.loads(allocate("runs", "--store", "", "list", "--json").stdout or "{}").get("runs", [])] or [
        run["run_id"] for run in json.loads(allocate("runs", "list", "--json").stdout)["runs"]
    ]  # fmt: skip
    assert len(ids) == 2
    total = json.loads(allocate("runs", "spend", "--json").stdout)["total_usd"]
    grouped = allocate("runs", "group", *ids, "--task", "parser")
    assert grouped.returncode == 0, grouped.stderr
    assert json.loads(allocate("runs", "spend", "--json").stdout)["total_usd"] == total
    assert "parser" in allocate("runs").stdout
    assert allocate("runs", "ungroup", "last").returncode == 0
    turns = next(
        i for i in ids if json.loads(allocate("runs", "show", i, "--json").stdout)["multi_turn"]
    )
    assert allocate("runs", "confirm", turns).returncode == 0
    assert allocate("runs", "split", turns, "--at-turn", 1).returncode == 0
    assert json.loads(allocate("runs", "spend", "--json").stdout)["total_usd"] == total
    assert allocate("runs", "forget", "--source", "claude_code").returncode == 2
    allocate("runs", "ungroup", f"{turns}.1")
    assert allocate("runs", "forget", "--source", "claude_code", "--yes").returncode == 0
    assert "No runs" in allocate("runs").stdout


def test_reading_commands_make_no_store(allocate: Allocate, tmp_path: Path) -> None:
    for command in (["runs"], ["runs", "list"], ["runs", "spend"], ["runs", "export"]):
        assert allocate(*command).returncode == 0
    assert allocate("reward", "last", "1").returncode == 6
    assert not list((tmp_path / "home").rglob("*.sqlite"))


@pytest.mark.parametrize("value", ["2", "-0.1", "nan", "inf", "good", ""])
def test_a_reward_lies_between_0_and_1(allocate: Allocate, value: str) -> None:
    allocate("ingest", SUBAGENTS)
    done = allocate("reward", "last", value)
    assert done.returncode == 2
    assert "reward" in done.stderr


def test_rewards_by_file_all_or_nothing(allocate: Allocate, tmp_path: Path) -> None:
    allocate("ingest", SUBAGENTS)
    session = next(SUBAGENTS.glob("*.jsonl")).stem
    rewards = tmp_path / "rewards.csv"
    rewards.write_text(f"session,reward\n{session},0.75\nnobody,1\n")
    assert allocate("ingest", "--rewards", rewards).returncode == 2
    assert json.loads(allocate("runs", "show", "last", "--json").stdout)["reward"] is None
    rewards.write_text(f"session,reward\n{session},0.75\n")
    assert allocate("ingest", "--rewards", rewards).returncode == 0
    assert json.loads(allocate("runs", "show", "last", "--json").stdout)["reward"] == 0.75


def bad_files(folder: Path) -> dict[str, bytes]:
    good = next(SUBAGENTS.glob("*.jsonl")).read_bytes()
    return {
        "picture.jsonl": b"\x89PNG\r\n\x1a\n" + os.urandom(4000),
        "empty.jsonl": b"",
        "notes.jsonl": b"these are notes\n" * 30,
        "cut.jsonl": good[:-40],
    }


def test_bad_files_are_named_and_the_rest_lands(allocate: Allocate, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name, content in bad_files(folder).items():
        (folder / name).write_bytes(content)
    done = allocate("ingest", *sorted(folder.iterdir()))
    assert done.returncode == 0
    assert done.stdout.startswith("1 runs: 1 new")
    for name in ("picture.jsonl", "empty.jsonl", "notes.jsonl"):
        assert f"{name}: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("cell", "value"),
    [("score", "good"), ("score", "140"), ("usd", "-1"), ("usd", "nan"), ("minutes", "inf")],
)
def test_a_wrong_cell_is_rejected_with_its_line(
    allocate: Allocate, table: tuple[Path, Path], cell: str, value: str
) -> None:
    with table[0].open() as file:
        rows = list(csv.DictReader(file))
    rows[4][cell] = value
    with table[0].open("w") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    done = allocate("ingest", table[0], "--map", table[1])
    assert done.returncode == 0
    assert done.stdout.startswith("39 runs: 39 new")
    assert "table.csv:6:" in done.stderr


@pytest.mark.parametrize(
    ("prices", "said"),
    [('[[price]]\nmodel="m"\ninput=nan\noutput=1\n', "nan"), ('[[price]]\nmodel="m"\ninput=-1\noutput=1\n', "-1"),
     ("not toml [", "prices.toml")],
)  # fmt: skip
def test_a_wrong_price_fails_closed(
    allocate: Allocate, tmp_path: Path, prices: str, said: str
) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(prices)
    for command in (["ingest", SUBAGENTS], ["--budget", "5"]):
        done = allocate(*command, "--prices", file)
        assert done.returncode == 2
        assert said in done.stderr.lower()


def test_what_is_not_there_or_empty(allocate: Allocate, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for path in (empty, tmp_path / "nowhere"):
        done = allocate("ingest", path)
        assert done.returncode == 2
        assert str(path) in done.stderr
    assert allocate("ingest").returncode == 2


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_ingest_leaves_the_store_as_it_was(
    allocate: Allocate, environment: dict[str, str], tmp_path: Path, stop: signal.Signals
) -> None:
    allocate("ingest", SUBAGENTS)
    before = allocate("runs", "export").stdout
    many = tmp_path / "many"
    many.mkdir()
    line = b'{"teamalloc":1,"run_id":"r%d","team":"lead=m","source":{"format":"native","reader_version":1,"session_id":"s%d","digest":""}}\n'
    (many / "runs.jsonl").write_bytes(b"".join(line % (i, i) for i in range(40_000)))
    code = "from teamalloc.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "ingest", str(many)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    time.sleep(1.5)
    assert process.poll() is None, "it was over before it could be stopped"
    process.send_signal(stop)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == (130 if stop == signal.SIGINT else -signal.SIGKILL)
    assert b"Traceback" not in stderr
    assert allocate("runs", "export").stdout == before


def test_a_reader_that_goes_away_is_no_error(
    allocate: Allocate, environment: dict[str, str]
) -> None:
    allocate("ingest", SUBAGENTS)
    process = subprocess.Popen(
        [sys.executable, "-c", "from teamalloc.cli import main; main()", "runs", "export"],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    stderr = process.stderr.read()
    process.stderr.close()
    assert process.wait(60) in (0, 1)
    assert b"Traceback" not in stderr
    assert b"Exception" not in stderr
