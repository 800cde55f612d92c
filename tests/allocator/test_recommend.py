"""Answers on a planted world, against a search by hand and against what they promise."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import numpy as np
import pytest

from planted import LUNA, SOL, planted_runs, true_cost_usd, true_seconds
from teamalloc.allocator.problem import Problem
from teamalloc.allocator.recommend import (
    ESTABLISHED_RUNS,
    TIE_P,
    TIE_REWARD,
    Recommendation,
    recommend,
)
from teamalloc.allocator.repair import repaired
from teamalloc.allocator.space import SearchSpace
from teamalloc.data.prices import PriceBook
from teamalloc.data.run import Run, Source
from teamalloc.data.team import parse_team
from teamalloc.models.encode import encode
from teamalloc.models.fit import fit_forecaster
from teamalloc.models.forecast import Forecaster

DAY = date(2026, 12, 1)
SPACE = SearchSpace.of([LUNA, SOL], [LUNA, SOL])


@pytest.fixture(scope="module")
def planted() -> Forecaster:
    return fit_forecaster(planted_runs(300, 30), prices=PriceBook.load(), on=DAY)


def ask(planted: Forecaster, **limits: float) -> Recommendation:
    return recommend(Problem(**limits), planted, space=SPACE)  # type: ignore[arg-type]


def test_the_answer_keeps_its_limits_in_the_planted_world(planted: Forecaster) -> None:
    found = ask(planted, budget_usd=12.0, latency_s=2400.0)
    team = parse_team(found.best.team)
    assert found.verdict in ("better", "tie")
    assert true_cost_usd(team) < 12.0
    assert true_seconds(team) < 2400.0
    assert found.best.cost_usd.p_ok is not None
    assert found.best.cost_usd.p_ok >= 0.9
    # Only a strong lead earns much here, and cheap implementers hurt.
    assert team.lead.model == SOL
    assert not any(seat.model == LUNA for seat in team.stage("implementer"))


def test_no_team_of_the_grid_scores_better(planted: Forecaster) -> None:
    """The same rule, written once more for one team at a time."""
    problem = Problem(budget_usd=8.0, latency_s=3000.0)
    found = recommend(problem, planted, space=SPACE)
    best = found.tied_with or found.best
    cells = np.flatnonzero(SPACE.is_distinct())[::7]
    teams = [SPACE.team(int(cell)) for cell in cells]
    from teamalloc.allocator.judge import judge

    everything = planted.predict(SPACE.columns(planted.models.who, np.arange(len(SPACE))))
    judged = judge(everything, planted, problem)
    by_hand = max(
        (judged.score[cell], str(team))
        for cell, team in zip(cells, teams, strict=True)
        if judged.p_cost_ok[cell] >= 0.9 and judged.p_latency_ok[cell] >= 0.9
    )
    at = next(i for i in range(len(SPACE)) if str(SPACE.team(i)) == best.team)
    assert judged.score[at] >= by_hand[0] - 1e-9


def test_more_money_never_earns_less(planted: Forecaster) -> None:
    """Before a tie hands the task to a cheaper team."""
    answers = [ask(planted, budget_usd=usd) for usd in (2.0, 6.0, 10.0, 30.0)]
    rewards = [(found.tied_with or found.best).reward.value for found in answers]
    assert rewards == sorted(rewards)


def test_the_baseline_is_the_best_lead_alone(planted: Forecaster) -> None:
    found = ask(planted, budget_usd=12.0)
    assert found.baseline.team == f"lead={SOL} blocking"
    assert found.p_better is None or 0.0 <= found.p_better <= 1.0


def test_a_tie_takes_the_cheaper_team() -> None:
    few = fit_forecaster(planted_runs(25, 5), prices=PriceBook.load(), on=DAY)
    answers = [ask(few, budget_usd=float(usd)) for usd in np.geomspace(0.3, 60.0, 40)]
    ties = [found for found in answers if found.tied_with is not None]
    assert ties
    for found in ties:
        assert found.tied_with is not None
        assert found.verdict == "tie"
        assert found.best.holds
        assert found.best.cost_usd.value < found.tied_with.cost_usd.value
        dearer, cheaper = (
            encode([parse_team(choice.team)], few.models.who)
            for choice in (found.tied_with, found.best)
        )
        gain = found.tied_with.reward.value - found.best.reward.value
        assert few.p_better(dearer, cheaper)[0] < TIE_P or gain < TIE_REWARD
        proven = found.best.n_runs >= ESTABLISHED_RUNS
        assert gain < TIE_REWARD or parse_team(found.best.team).is_solo or proven


@pytest.mark.parametrize(
    "limits",
    [
        {"budget_usd": 0.01},
        {"latency_s": 30.0},
        {"budget_usd": 0.01, "latency_s": 30.0},
        {"budget_usd": 0.2, "n_tasks": 20, "n_parallel": 4, "latency_s": 3600.0},
    ],
)
def test_every_repair_makes_something_fit(planted: Forecaster, limits: dict[str, float]) -> None:
    problem = Problem(**limits)  # type: ignore[arg-type]
    found = recommend(problem, planted, space=SPACE)
    assert found.verdict == "infeasible"
    assert not found.best.holds
    assert found.repairs
    for repair in found.repairs:
        mended = recommend(repaired(problem, repair), planted, space=SPACE)
        assert mended.verdict != "infeasible", repair


def test_a_cheaper_proven_team_gives_way_only_to_a_probable_gain() -> None:
    """Means of 75 runs of three teams; the grid has thousands that were never run."""
    source = Source("table", 1, "s", "")
    rows = [
        Run(
            f"r{i}",
            parse_team(team),
            replace(source, session_id=f"s{i}"),
            n_runs=75,
            reward=reward,
            reward_source="log",
            total_reported_usd=Decimal(usd),
            assigned=True,
        )
        for i, (team, reward, usd) in enumerate(
            [
                (f"lead={LUNA} planner={LUNA}", 0.55, "0.10"),
                (f"lead={SOL} planner={LUNA}", 0.70, "1.00"),
                (f"lead={SOL} planner={SOL}", 0.62, "2.00"),
            ]
        )
    ]
    forecaster = fit_forecaster(rows, prices=PriceBook.load(), on=DAY)
    proven = encode([parse_team(f"lead={SOL} planner={LUNA}")], forecaster.models.who)
    for usd in (1.3, 3.0):
        found = recommend(Problem(budget_usd=usd), forecaster, space=SPACE)
        if found.best.n_runs == 0:
            guess = encode([parse_team(found.best.team)], forecaster.models.who)
            assert forecaster.p_better(guess, proven)[0] >= TIE_P


def test_the_frontier_rises_in_cost_and_reward(planted: Forecaster) -> None:
    frontier = ask(planted, budget_usd=20.0).frontier
    assert len(frontier) > 2
    costs = [choice.cost_usd.value for choice in frontier]
    rewards = [choice.reward.value for choice in frontier]
    assert costs == sorted(costs)
    assert rewards == sorted(rewards)


def test_the_next_dollar_is_the_difference_of_two_teams(planted: Forecaster) -> None:
    found = ask(planted, budget_usd=12.0)
    for step in found.next_dollar:
        gain = 100.0 * (step.choice.reward.value - found.best.reward.value)
        assert step.gain.value == pytest.approx(gain)
        assert step.gain.low < gain < step.gain.high
        added = step.choice.cost_usd.value - found.best.cost_usd.value
        assert step.added_usd == pytest.approx(added)
