"""Every implementation of every extension point keeps its contract."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from teamalloc.data.formats import formats
from teamalloc.data.formats.native import encode
from teamalloc.data.run import AgentUsage, Run, Source, Tokens, UsageSlice
from teamalloc.data.team import parse_team
from teamalloc.testing import check_format
from teamalloc.testing.formats import HEAD_BYTES

BUGCASES = Path(__file__).parent / "logs" / "bugcases"

LOGS_OF = {
    "claude_code_session": ("claude_code", "*.jsonl"),
    "codex_rollout": ("codex", "rollout-*.jsonl"),
    "mini_swe_agent": ("mini_swe", "*.traj.json"),
}
"the word for a format in a case's expected.json: our reader of it, and what its logs are called"


@dataclass(frozen=True)
class Case:
    """The logs of one bug case that one reader reads."""

    name: str
    reader: str
    paths: list[Path]


def cases() -> list[Case]:
    found = []
    for folder in sorted(BUGCASES.glob("*/")):
        expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
        # A case about two formats names both: "codex_rollout + terminal_bench_v1".
        for word in expected["format"].split(" + "):
            if word in LOGS_OF:
                reader, pattern = LOGS_OF[word]
                found.append(Case(folder.name, reader, sorted((folder / "input").rglob(pattern))))
    return found


CASES = cases()
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)

RUN = Run(
    run_id="r1",
    team=parse_team("lead=gpt-5.6-sol@xhigh planner=gpt-5.6-luna*2 blocking"),
    source=Source("codex", 1, "s-17", "5e" * 32),
    task_id="parser",
    agents=(
        AgentUsage(
            "lead",
            "lead",
            usage=(
                UsageSlice("gpt-5.6-sol", Tokens(1200, 50, output=300), effort="xhigh"),
                UsageSlice(None, None, cost_reported_usd=Decimal("0.0125")),
            ),
            intervals=((0.0, 81.5),),
        ),
    ),
    reward=0.8,
    reward_source="user",
    active_s=81.5,
    started_at=datetime(2026, 11, 3, 10, tzinfo=UTC),
    tags=(("repo", "größe"),),
)


@pytest.fixture
def native_log(tmp_path: Path) -> Path:
    """Our own log: an exported run, and a row somebody wrote by hand."""
    log = tmp_path / "runs.jsonl"
    by_hand = b'{"teamalloc": 1, "team": "lead=gpt-5.6-luna", "total_reported_usd": "3.20"}'
    log.write_bytes(encode(RUN) + b"\n" + by_hand + b"\n")
    return log


@each_case
def test_format(case: Case) -> None:
    check_format(formats()[case.reader], case.paths)


@pytest.mark.slow
@each_case
def test_format_at_every_byte(case: Case) -> None:
    size = sum(path.stat().st_size for path in case.paths)
    if size > 10_000:
        pytest.skip(f"{size} bytes: cut at some places only, in test_format")
    check_format(formats()[case.reader], case.paths, max_cuts=None)


def test_format_native(native_log: Path) -> None:
    check_format(formats()["native"], [native_log], max_cuts=None)


def test_a_log_is_known_to_one_reader_only(native_log: Path) -> None:
    logs = [(case.reader, path) for case in CASES for path in case.paths]
    for reader, path in [*logs, ("native", native_log)]:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        assert [name for name, r in formats().items() if r.sniff(path, head)] == [reader], path


def test_every_format_is_checked() -> None:
    assert {case.reader for case in CASES} | {"native"} == formats().keys()
