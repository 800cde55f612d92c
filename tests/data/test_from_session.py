"""Roles, mode, slices and copied history, on sessions written out by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teamalloc.data.formats import AgentTrace, Request, Session
from teamalloc.data.from_session import run_from_session, without_repeats
from teamalloc.data.price_rows import read_price_rows
from teamalloc.data.prices import PriceBook
from teamalloc.data.roles import infer_roles
from teamalloc.data.run import Run, Tokens

NINE = datetime(2026, 9, 10, 9, tzinfo=UTC)
PRICES = PriceBook(
    read_price_rows(
        Path("test.toml"),
        b'[[price]]\nmodel="sol"\ninput=1\noutput=10\n'
        b'[[price]]\nmodel="sol"\ninput=2\noutput=20\nabove=1000\n',
    ),
    read_price_rows(Path("none.toml"), b""),
)


def at(second: float) -> datetime:
    return NINE + timedelta(seconds=second)


def ask(second: float | None, fresh: int = 10, *, key: str | None = None, n: int = 1) -> Request:
    moment = None if second is None else at(second)
    return Request(key, moment, "openai/SOL", Tokens(fresh), n_calls=n)


def run_of(session: Session) -> Run:
    return run_from_session(
        session,
        format_name="test",
        reader_version=1,
        prices=PRICES,
        salted=lambda kind, text: f"{kind}-{len(text)}",
    )


def helper(name: str, start: float, end: float, **seen: object) -> AgentTrace:
    trace = AgentTrace(name, "lead", started_at=at(start), intervals=[(at(start), at(end))])
    trace.requests = [ask(end)]
    for field, value in seen.items():
        setattr(trace, field, value)
    return trace


# --- roles ----------------------------------------------------------------------------------------


def test_roles_by_what_an_agent_did() -> None:
    lead = AgentTrace("lead", n_edits=1, edit_times=[at(50)])
    roles = infer_roles(
        [
            lead,
            helper("edits", 5, 9, n_edits=1, edit_times=[at(7)], n_commands=3),
            helper("early", 20, 30, n_commands=2),
            helper("late", 60, 70, n_commands=2),
            helper("late reader", 60, 70, n_tools=4),
            helper("told", 5, 9, role="verifier"),
            AgentTrace("nothing", "lead"),
        ]
    )
    assert roles == {
        "lead": "lead",
        "edits": "implementer",
        "early": "planner",
        "late": "verifier",
        "late reader": "planner",
        "told": "verifier",
        "nothing": "unknown",
    }


def test_what_is_started_after_the_implementers_checks_their_work() -> None:
    lead = AgentTrace("lead")
    editor = helper("editor", 10, 20, n_edits=1, edit_times=[at(15)])
    checker = helper("checker", 30, 40, n_commands=1)
    assert infer_roles([lead, editor, checker])["checker"] == "verifier"
    untimed = helper("editor", 10, 20, n_edits=1)
    assert infer_roles([lead, untimed, checker])["checker"] == "planner"


# --- mode -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lead_at", "edits_at", "mode"),
    [
        ([1, 50], [], "blocking"),
        ([1, 12, 14, 50], [], "blocking"),  # started the second helper, then waited
        ([1, 12, 14, 16, 50], [], "async"),
        ([1, 50], [15], "async"),
    ],
)
def test_the_lead_works_on_or_waits(lead_at: list[float], edits_at: list[float], mode: str) -> None:
    lead = AgentTrace("lead", requests=[ask(second) for second in lead_at])
    lead.edit_times = [at(second) for second in edits_at]
    agents = [lead, helper("a", 10, 30, n_tools=1), helper("b", 13, 40, n_tools=1)]
    team = run_of(Session("s", agents, "d", started_at=NINE)).team
    assert team is not None
    assert (team.mode, team.n_agents("planner")) == (mode, 2)


# --- slices ---------------------------------------------------------------------------------------


def test_each_request_is_priced_alone() -> None:
    lead = AgentTrace(
        "lead", requests=[ask(1, 1000), ask(2, 1000), ask(3, 1001), ask(4, 5000, n=5)]
    )
    (agent,) = run_of(Session("s", [lead], "d")).agents
    by_band = {(piece.context_band, piece.n_calls): piece.cost_usd for piece in agent.usage}
    # two at the base price, one above the cliff, and a sum of five that nobody can price
    assert by_band == {(0, 7): None, (1000, 1): Decimal("0.002002")}
    alone = AgentTrace("lead", requests=lead.requests[:3])
    assert run_of(Session("s", [alone], "d")).cost_usd == Decimal("0.004002")


requests = st.builds(
    Request,
    key=st.none(),
    at=st.none() | st.integers(0, 200_000).map(at),
    model=st.sampled_from([None, "sol", "acme"]),
    tokens=st.builds(Tokens, *[st.integers(0, 3000)] * 5),
    effort=st.sampled_from([None, "high"]),
    n_calls=st.integers(1, 3),
)


@settings(deadline=None)
@given(st.lists(requests, max_size=20), st.lists(st.integers(0, 200_000), max_size=3))
def test_slices_add_up_to_the_requests(asked: list[Request], turns: list[int]) -> None:
    lead = AgentTrace("lead", requests=asked)
    starts = sorted(at(second) for second in turns)
    run = run_of(Session("s", [lead], "d", turn_starts=starts, started_at=NINE))
    total = Tokens()
    for request in asked:
        assert request.tokens is not None
        total += request.tokens
    assert run.tokens == total
    assert run.agents[0].n_calls == sum(request.n_calls for request in asked)
    unpriced = [r for r in asked if r.model != "sol" or (r.n_calls > 1 and r.tokens.prompt > 1000)]  # type: ignore[union-attr]
    assert (run.cost_usd is None) == bool(unpriced)


def test_a_log_without_usage_is_unknown_not_free() -> None:
    run = run_of(Session("s", [AgentTrace("lead", usage_missing=True)], "d"))
    assert (run.tokens, run.cost_usd, run.team) == (None, None, None)
    assert run.flags == ("usage_missing",)


# --- copied history -------------------------------------------------------------------------------


def test_copied_history_is_neither_work_nor_time() -> None:
    lead = AgentTrace(
        "lead",
        requests=[ask(1, key="a"), ask(2, key="b"), ask(2, key="b"), ask(101, key="c")],
        intervals=[(at(0), at(3)), (at(100), at(110))],
    )
    child = AgentTrace("old helper", "lead", requests=[ask(2, key="h")])
    session = Session(
        "s",
        [lead, child],
        "d",
        n_prompts=2,
        turn_starts=[at(0), at(100)],
        started_at=at(0),
        ended_at=at(110),
    )
    own, n_left_out = without_repeats(session, {"a", "b", "h"})
    assert n_left_out == 4
    assert own is not None
    run = run_of(own)
    assert [agent.agent_id for agent in run.agents] == ["lead"]
    assert (run.agents[0].n_calls, run.started_at) == (1, at(100))
    assert (run.active_s, run.span_s, run.multi_turn, run.turn_starts_s) == (10, 10, False, (0.0,))


def test_a_session_that_is_all_copy_is_no_run() -> None:
    lead = AgentTrace("lead", requests=[ask(1, key="a")], intervals=[(at(0), at(3))])
    session = Session("s", [lead], "d", turn_starts=[at(0)], started_at=at(0))
    assert without_repeats(session, {"a"}) == (None, 1)
    assert without_repeats(Session("s", [AgentTrace("lead")], "d"), set()) == (None, 0)


def test_a_row_twice_in_one_session_counts_once() -> None:
    lead = AgentTrace("lead", requests=[ask(1, key="a"), ask(1, key="a")])
    own, n_left_out = without_repeats(Session("s", [lead], "d", started_at=NINE), set())
    assert n_left_out == 1
    assert own is not None
    assert run_of(own).agents[0].n_calls == 1
