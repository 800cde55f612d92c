"""Hypothesis strategies for runs, and one written by hand, shared by the tests of the store."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from hypothesis import strategies as st

from teamalloc.data.grouping import team_of
from teamalloc.data.run import AgentUsage, Limits, Run, Source, Tokens, UsageSlice
from teamalloc.data.team import parse_team

START = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)

counts = st.integers(0, 10**9)
dollars = st.decimals(0, 1000, places=6)
seconds = st.floats(0, 1e6, allow_nan=False)
words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
models = st.sampled_from(["gpt-5.6-sol", "gpt-5.6-luna", "claude-opus-4-5"])
tokens = st.builds(Tokens, counts, counts, counts, counts, counts)


def usage_slices(n_turns: int = 3) -> st.SearchStrategy[UsageSlice]:
    """A priced slice of one of the first ``n_turns`` turns."""
    return st.builds(
        UsageSlice,
        model=models,
        tokens=tokens,
        n_calls=st.integers(0, 500),
        effort=st.sampled_from([None, "low", "xhigh"]),
        context_band=st.sampled_from([0, 200_000]),
        speed=st.sampled_from([None, "fast"]),
        day=st.none() | st.dates(date(2025, 1, 1), date(2027, 1, 1)),
        turn=st.integers(0, n_turns - 1),
        cost_reported_usd=st.none() | dollars,
        cost_list_usd=dollars,
    )


@st.composite
def agents(draw: st.DrawFn) -> tuple[AgentUsage, ...]:
    """A lead and up to three helpers, with intervals in the first 100 seconds."""
    n_helpers = draw(st.integers(0, 3))
    found = []
    for i in range(n_helpers + 1):
        edges = sorted(draw(st.lists(st.integers(0, 100), min_size=0, max_size=6, unique=True)))
        found.append(
            AgentUsage(
                agent_id="lead" if i == 0 else f"agent-{i}",
                role="lead"
                if i == 0
                else draw(st.sampled_from(["planner", "implementer", "verifier", "unknown"])),
                parent_id=None if i == 0 else draw(st.sampled_from(["lead", found[-1].agent_id])),
                agent_label=draw(st.none() | words),
                asked_model=draw(st.none() | models),
                usage=tuple(draw(st.lists(usage_slices(), max_size=4))),
                intervals=tuple(
                    (float(a), float(b)) for a, b in zip(edges[::2], edges[1::2], strict=False)
                ),
                waited_s=draw(st.none() | seconds),
                flags=draw(st.sampled_from([(), ("output_lower_bound",)])),
            )
        )
    return tuple(found)


@st.composite
def runs(draw: st.DrawFn, run_id: str | None = None) -> Run:
    """A run of three turns with priced agents."""
    team = draw(agents())
    return Run(
        run_id=run_id or draw(words),
        team=team_of(team),
        source=Source(draw(words), draw(st.integers(1, 9)), draw(words), "ab" * 32),
        task_id=draw(st.none() | words),
        agents=team,
        reward=draw(st.none() | st.floats(0, 1)),
        reward_source=draw(st.sampled_from([None, "log", "grader"])),
        active_s=draw(st.none() | seconds),
        span_s=draw(st.none() | seconds),
        status=draw(st.sampled_from(["done", "failed", "timed_out", "unknown"])),
        limits=Limits(draw(st.none() | dollars), draw(st.none() | seconds)),
        multi_turn=draw(st.booleans()),
        turn_starts_s=(0.0, 30.0, 60.0),
        started_at=START + timedelta(seconds=draw(st.integers(0, 1000))),
        client=draw(st.none() | words),
        tags=tuple(draw(st.dictionaries(words, words, max_size=2)).items()),
    )


def a_run(
    run_id: str = "r1", *, session: str | None = None, minute: int | None = 0, usd: str = "1.25"
) -> Run:
    """A lead on Sol with one Luna planner; two turns, at 0 and 100 s; 3.5 times ``usd`` in all."""
    cost = Decimal(usd)

    def usage(model: str, turn: int, times: str) -> UsageSlice:
        return UsageSlice(
            model, Tokens(10, 20, 0, 0, 5), turn=turn, cost_list_usd=cost * Decimal(times)
        )

    lead = AgentUsage(
        "lead",
        "lead",
        usage=(usage("gpt-5.6-sol", 0, "1"), usage("gpt-5.6-sol", 1, "2")),
        intervals=((0.0, 40.0), (100.0, 160.0)),
    )
    planner = AgentUsage(
        "p",
        "planner",
        parent_id="lead",
        usage=(usage("gpt-5.6-luna", 0, "0.5"),),
        intervals=((10.0, 30.0),),
    )
    return Run(
        run_id,
        parse_team("lead=gpt-5.6-sol planner=gpt-5.6-luna"),
        Source("codex", 1, session or f"session-{run_id}", "cd" * 32),
        agents=(lead, planner),
        active_s=100.0,
        span_s=165.0,
        status="done",
        multi_turn=True,
        turn_starts_s=(0.0, 100.0),
        started_at=None if minute is None else START + timedelta(minutes=minute),
        client="codex_cli",
        tags=(("origin", run_id),),
    )
