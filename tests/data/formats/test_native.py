"""Our own log: what is written is read back, and what is wrong is named."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teamalloc.data.formats import Reject
from teamalloc.data.formats.native import CSV_COLUMNS, Native, csv_row, decode, encode
from teamalloc.data.run import AgentUsage, Limits, Run, Source, Tokens, UsageSlice
from teamalloc.data.team import Seat, TeamConfig, parse_team
from teamalloc.errors import BadInput
from teamalloc.testing import check_format

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
names = st.from_regex(r"[a-z][a-z0-9.\-]{0,12}", fullmatch=True)
seconds = st.floats(0, 1e7, allow_nan=False)
money = st.decimals(0, 10_000, places=9)
instants = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


tokens = st.builds(Tokens, *[st.integers(0, 10**12)] * 5)
slices = st.builds(
    UsageSlice,
    model=maybe(names),
    tokens=maybe(tokens),
    n_calls=st.integers(0, 1000),
    effort=maybe(names),
    context_band=st.sampled_from([0, 272_000]),
    speed=maybe(words),
    service_tier=maybe(words),
    day=maybe(st.dates(date(2020, 1, 1), date(2030, 1, 1))),
    turn=st.integers(0, 9),
    cost_reported_usd=maybe(money),
    cost_list_usd=maybe(money),
)
agents = st.builds(
    AgentUsage,
    agent_id=words,
    role=st.sampled_from(["lead", "planner", "implementer", "verifier", "unknown"]),
    parent_id=maybe(words),
    agent_label=maybe(words),
    asked_model=maybe(words),
    usage=st.lists(slices, max_size=2).map(tuple),
    intervals=st.lists(st.tuples(seconds, seconds), max_size=2).map(tuple),
    waited_s=maybe(seconds),
    flags=st.just(("output_lower_bound", "price_missing")) | st.just(()),
)
helpers = st.builds(
    Seat,
    role=st.sampled_from(["planner", "implementer", "verifier"]),
    model=names,
    count=st.integers(1, 16),
    effort=maybe(names),
)
teams = st.builds(
    TeamConfig,
    lead=st.builds(Seat, role=st.just("lead"), model=names, effort=maybe(names)),
    helpers=st.lists(helpers, max_size=3).map(tuple),
    mode=st.sampled_from(["blocking", "async"]),
)
runs = st.builds(
    Run,
    run_id=words,
    team=maybe(teams),
    source=st.builds(Source, words, st.integers(1, 9), words, words),
    task_id=maybe(words),
    agents=st.lists(agents, max_size=3).map(tuple),
    total_reported_usd=maybe(money),
    reward=maybe(st.floats(0, 1)),
    reward_source=maybe(st.sampled_from(["log", "file", "user", "grader"])),
    active_s=maybe(seconds),
    span_s=maybe(seconds),
    status=st.sampled_from(["done", "failed", "timed_out", "unknown"]),
    limits=st.builds(Limits, maybe(money), maybe(seconds)),
    assigned=st.booleans(),
    multi_turn=st.booleans(),
    turn_starts_s=st.lists(seconds, max_size=3).map(tuple),
    n_runs=st.integers(1, 100),
    started_at=maybe(instants),
    client=maybe(words),
    client_version=maybe(words),
    tags=st.lists(st.tuples(words, words), max_size=2).map(tuple),
    plan_digest=maybe(words),
)


@settings(deadline=None)
@given(runs)
def test_a_run_survives_the_round_trip(run: Run) -> None:
    line = encode(run)
    assert b"\n" not in line
    assert decode(line) == run
    assert encode(decode(line)) == line
    assert Native().sniff(Path("x.jsonl"), line)


def test_a_home_made_row_takes_defaults() -> None:
    run = decode(
        b'{"teamalloc": 1, "team": "lead=sol planner=luna*8 async", "reward": 0.5,'
        b' "total_reported_usd": "1.25", "active_s": 90}'
    )
    assert run.team == parse_team("lead=sol planner=luna*8 async")
    assert (run.reward, run.cost_usd, run.active_s) == (0.5, Decimal("1.25"), 90)
    assert (run.n_runs, run.status, run.assigned, run.task_id) == (1, "unknown", False, None)
    assert run.source.format == "native"
    assert len(run.run_id) == 12
    assert decode(encode(run)) == run


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"reward": 1.5}, r"reward lies in \[0, 1\]"),
        ({"reward": "good"}, r"\$\.reward"),
        ({"agents": [{"agent_id": "lead", "role": "boss"}]}, r"\$\.agents\[0\]\.role"),
        (
            {
                "agents": [
                    {
                        "agent_id": "lead",
                        "role": "lead",
                        "usage": [{"model": "m", "tokens": {"output": -1}}],
                    }
                ]
            },
            "whole number of tokens",
        ),
        ({"total_reported_usd": "-1"}, "not negative"),
        ({"total_reported_usd": "NaN"}, "finite"),
        ({"active_s": float("nan")}, r"\$\.active_s"),
        ({"rewrad": 1}, r"no field \$\.rewrad"),
        (
            {"agents": [{"agent_id": "lead", "role": "lead", "tokens": 5}]},
            r"\$\.agents\[0\]\.tokens",
        ),
        ({"team": "planner=luna"}, "0 leads"),
        ({"teamalloc": 2}, "written by a newer version"),
        ({"started_at": "2026-12-01T00:00:00"}, "zone"),
    ],
)
def test_a_wrong_row_is_rejected_with_the_path_and_line(
    tmp_path: Path, fields: dict[str, Any], says: str
) -> None:
    path = tmp_path / "own.jsonl"
    good = {"teamalloc": 1, "team": "lead=sol", "reward": 1}
    path.write_text("\n".join(json.dumps(row) for row in (good, good | fields, good)) + "\n")
    rejects: list[Reject] = []
    sessions = list(Native().read([path], rejects.append))
    assert len(sessions) == 2
    assert [reject.line for reject in rejects] == [2]
    with pytest.raises(BadInput, match=says):
        raise BadInput(rejects[0].reason)


def test_other_json_is_not_ours() -> None:
    assert not Native().sniff(Path("a.jsonl"), b'{"type": "user"}\n{"teamalloc": 1}\n')
    assert not Native().sniff(Path("a.jsonl"), b"\x89PNG\r\n")


def test_the_flat_row_has_every_column() -> None:
    usage = UsageSlice("luna", Tokens(1, 2, 3, 4, 5), cost_list_usd=Decimal("1E-7"))
    run = Run(
        "r1",
        parse_team("lead=sol planner=luna*2"),
        Source("x", 1, "s", "d"),
        agents=(
            AgentUsage("lead", "lead", usage=(UsageSlice("sol", None),)),
            AgentUsage("a", "planner", usage=(usage,)),
            AgentUsage("b", "planner", usage=(usage,)),
        ),
        reward=0.25,
    )
    row = csv_row(run)
    assert tuple(row) == CSV_COLUMNS
    assert row["tokens_planner_output"] == "10"
    assert row["tokens_lead_output"] == ""
    assert row["cost_usd"] == ""
    assert (row["team"], row["reward"]) == ("lead=sol planner=luna*2 blocking", "0.25")


def test_it_keeps_the_contract_of_a_reader(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    source = Source("x", 1, "s", "d")
    teams = ("lead=sol planner=luna*2", "lead=luna")
    lines = [encode(Run(f"r{i}", parse_team(t), source, reward=0.5)) for i, t in enumerate(teams)]
    path.write_bytes(b"\n".join(lines) + b"\n")
    check_format(Native(), [path])
