from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_strategies import START, a_run, runs

from teamalloc.data.grouping import merge, split, team_of, turn_at
from teamalloc.data.run import AgentUsage, Run, Tokens, UsageSlice
from teamalloc.errors import BadInput


def agent(agent_id: str, role: str, model: str | None, **more: object) -> AgentUsage:
    usage = () if model is None else (UsageSlice(model, Tokens(1), effort="low"),)
    return AgentUsage(agent_id, role, usage=usage, **more)  # type: ignore[arg-type]


def test_seats_count_distinct_agents() -> None:
    found = [
        agent("lead", "lead", "sol"),
        agent("a", "planner", "luna"),
        agent("b", "planner", "luna"),
        agent("c", "verifier", None, asked_model="terra"),
        agent("d", "unknown", "luna"),
    ]
    assert str(team_of(found)) == "lead=sol@low planner=luna@low*2 verifier=terra blocking"
    assert str(team_of(found, mode="async")).endswith("async")


def test_an_agent_is_what_answered_most_of_its_calls() -> None:
    pieces = (UsageSlice("luna", None, n_calls=2), UsageSlice("sol", None, n_calls=3))
    assert str(team_of([AgentUsage("lead", "lead", usage=pieces)])) == "lead=sol blocking"


@pytest.mark.parametrize(
    "found",
    [
        [],
        [agent("a", "planner", "luna")],
        [agent("lead", "lead", None)],
        [agent("lead", "lead", "sol"), agent("a", "planner", None)],
        [agent("lead", "lead", "a name")],
    ],
)
def test_no_team_where_a_model_is_not_known(found: list[AgentUsage]) -> None:
    assert team_of(found) is None


def test_merge_by_hand() -> None:
    first = replace(a_run("a", minute=0), reward=0.25, reward_source="log")
    second = replace(a_run("b", minute=2), reward=0.75, reward_source="user", multi_turn=False)
    both = merge([second, first])
    assert (both.run_id, both.tags) == ("a", (("origin", "a"),))
    assert [a.agent_id for a in both.agents] == ["lead", "1.p", "2.p"]
    assert [a.parent_id for a in both.agents] == [None, "lead", "lead"]
    assert str(both.team) == "lead=gpt-5.6-sol planner=gpt-5.6-luna*2 blocking"
    assert both.cost_usd == Decimal("8.750")
    assert both.tokens == Tokens(60, 120, 0, 0, 30)
    assert (both.reward, both.reward_source) == (0.75, "user")
    # The first works 0-40 and 100-160 s, the second 120-160 and 220-280 s: 40 s are the same.
    assert both.active_s == 160.0
    assert both.span_s == 285.0
    assert both.turn_starts_s == (0.0, 100.0, 120.0, 220.0)
    assert [piece.turn for piece in both.agents[0].usage] == [0, 1, 2, 3]
    assert both.multi_turn


def test_merge_without_times_adds_them_up() -> None:
    both = merge([a_run("a", minute=None), a_run("b", minute=5)])
    assert both.active_s == 200.0
    assert both.span_s is None
    assert not both.agents[0].intervals


def test_merge_keeps_the_cost_of_a_log_with_totals_only() -> None:
    totals = replace(
        a_run("b", minute=9),
        agents=(),
        team=None,
        total_reported_usd=Decimal("2"),
        multi_turn=False,
    )
    both = merge([a_run("a"), totals])
    assert both.cost_usd == Decimal("6.375")
    assert both.tokens is None
    assert both.flags == ("usage_missing",)
    assert merge([totals, replace(totals, run_id="c")]).cost_usd == Decimal("4")


def test_merge_keeps_a_team_that_was_assigned() -> None:
    parts = [replace(a_run(name, minute=i), assigned=True) for i, name in enumerate("ab")]
    assert merge(parts).team == parts[0].team


def test_means_cannot_be_merged_or_split() -> None:
    mean = replace(a_run(), n_runs=75)
    with pytest.raises(BadInput, match="mean"):
        merge([mean, a_run("b")])
    with pytest.raises(BadInput, match="totals only"):
        split(mean, 1)


@settings(max_examples=40)
@given(st.lists(runs(), min_size=1, max_size=3))
def test_merge_loses_and_repeats_nothing(parts: list[Run]) -> None:
    whole = merge(parts)
    assert whole.tokens == sum((p.tokens for p in parts if p.tokens), Tokens())
    assert whole.cost_usd == sum(p.cost_usd for p in parts if p.cost_usd is not None)
    ids = Counter(a.agent_id for a in whole.agents)
    assert max(ids.values()) == 1
    assert whole.agents[0].role == "lead"
    assert {a.parent_id for a in whole.agents} <= {None, *ids}


def test_split_by_hand() -> None:
    run = replace(a_run(), reward=0.5, reward_source="log", task_id="task-1")
    one, two = split(run, 1)
    assert (one.run_id, two.run_id) == ("r1.1", "r1.2")
    assert (one.cost_usd, two.cost_usd) == (Decimal("1.875"), Decimal("2.50"))
    assert [a.agent_id for a in one.agents] == ["lead", "p"]
    assert [a.agent_id for a in two.agents] == ["lead"]
    assert (str(one.team), str(two.team)) == (str(run.team), "lead=gpt-5.6-sol blocking")
    assert two.agents[0].intervals == ((0.0, 60.0),)
    assert two.agents[0].usage[0].turn == 0
    assert (one.active_s, two.active_s) == (40.0, 60.0)
    assert (one.span_s, two.span_s) == (40.0, 65.0)
    assert two.started_at == START + timedelta(seconds=100)
    assert (one.turn_starts_s, two.turn_starts_s) == ((0.0,), (0.0,))
    assert (one.multi_turn, two.multi_turn) == (False, False)
    assert (one.reward, two.reward, one.task_id) == (None, None, None)
    assert (one.status, two.status) == ("unknown", "done")


def test_work_over_the_boundary_is_divided() -> None:
    run = a_run()
    lead = replace(run.agents[0], intervals=((50.0, 130.0),))
    one, two = split(replace(run, agents=(lead,), active_s=80.0), 1)
    assert one.agents[0].intervals == ((50.0, 100.0),)
    assert two.agents[0].intervals == ((0.0, 30.0),)
    assert (one.active_s, two.active_s) == (50.0, 30.0)


@settings(max_examples=40)
@given(runs(), st.integers(1, 2))
def test_the_parts_add_up_to_the_whole(run: Run, at_turn: int) -> None:
    parts = split(run, at_turn)
    assert sum((p.tokens for p in parts if p.tokens), Tokens()) == run.tokens
    assert sum(p.cost_usd for p in parts if p.cost_usd is not None) == run.cost_usd
    assert sum(a.n_calls for p in parts for a in p.agents) == sum(a.n_calls for a in run.agents)
    assert {a.agent_id for p in parts for a in p.agents} == {a.agent_id for a in run.agents}
    shares = [p.active_s for p in parts]
    if run.active_s is not None and None not in shares:
        assert sum(s for s in shares if s is not None) == pytest.approx(run.active_s)
    for part in parts:
        assert {a.parent_id for a in part.agents} <= {None, *(a.agent_id for a in part.agents)}


@pytest.mark.parametrize("turn", [-1, 0, 2, 9])
def test_split_at_a_turn_that_is_not_there(turn: int) -> None:
    with pytest.raises(BadInput, match=r"2 turns: give 1 to 1\."):
        split(a_run(), turn)


def test_the_turn_at_a_time() -> None:
    assert turn_at(a_run(), START + timedelta(seconds=50)) == 1
    assert turn_at(a_run(), START + timedelta(seconds=100)) == 1
    with pytest.raises(BadInput, match="no turn that starts"):
        turn_at(a_run(), START + timedelta(seconds=101))
    with pytest.raises(BadInput, match="no time"):
        turn_at(a_run(minute=None), START)
    with pytest.raises(BadInput, match="time zone"):
        turn_at(a_run(), START.replace(tzinfo=None))
