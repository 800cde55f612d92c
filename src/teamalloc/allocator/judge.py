"""Every allowed team against the limits: what it earns, costs and takes, and how surely."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from teamalloc.allocator.problem import Batch, Problem, batch_cost, batch_latency
from teamalloc.models.curve import Prediction
from teamalloc.models.encode import Bools, Floats
from teamalloc.models.families import Target
from teamalloc.models.forecast import Forecaster

DOUBT_WITH_MANY, DOUBT_RUNS = 0.5, 5.0
"""How much doubt about the limits weighs against reward: 1 up to ten runs, falling to 0.5 as runs
come in and the forecasts of doubt themselves get better. Tuned on planted worlds, development seeds."""
REFERENCE_POWER = 4
"how much more than the others the teams sure to keep the limits count in the reference reward"


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """``n`` teams and what is known of each under a problem."""

    reward: Prediction
    "of the average task"
    cost: Batch
    "US dollars of the batch"
    latency: Batch
    "seconds of the batch"
    p_cost_ok: Floats
    "(n,) probability that a new batch stays within the budget (1 without one)"
    p_latency_ok: Floats
    "(n,) the same for the latency limit"
    holds: Bools
    "(n,) both limits hold at the asked confidence"
    score: Floats
    "(n,) what is maximised among the teams that hold"

    def __len__(self) -> int:
        return len(self.holds)

    @property
    def p_both_ok(self) -> Floats:
        """(n,) probability of keeping both: the limits are taken as independent.

        Long runs are dear runs, so this is a lower bound where the two go together.
        """
        return self.p_cost_ok * self.p_latency_ok


def judge(
    forecast: Mapping[Target, Prediction], forecaster: Forecaster, problem: Problem
) -> Judged:
    """Judge all teams of a forecast.

    The best of thousands of estimates is the one most overestimated, so what is maximised is not
    the reward but the reward above a reference, times the probability that the limits truly hold:
    a team that only seems to fit pays for the doubt. The reference is the mean reward of the teams
    that surely fit, about what a careful choice would earn anyway.
    """
    reward = forecast["reward"]
    cost = batch_cost(forecast["cost"], forecaster.curves["cost"], problem)
    latency = batch_latency(forecast["latency"], forecaster.curves["latency"], problem)
    p_cost, p_latency = cost.p_within(problem.budget_usd), latency.p_within(problem.latency_s)
    surely = cost.p_quantile_within(problem.budget_usd, problem.confidence)
    surely = surely * latency.p_quantile_within(problem.latency_s, problem.confidence)
    weight = surely**REFERENCE_POWER
    reference = float((reward.mean * weight).sum() / max(weight.sum(), 1e-12))
    return Judged(
        reward=reward,
        cost=cost,
        latency=latency,
        p_cost_ok=p_cost,
        p_latency_ok=p_latency,
        holds=(p_cost >= problem.confidence) & (p_latency >= problem.confidence),
        score=(reward.mean - reference) * surely ** doubt_power(forecaster),
    )


def doubt_power(forecaster: Forecaster) -> float:
    """Power of the probability that the limits truly hold."""
    n_runs = forecaster.curves["cost"].support.n_runs
    return min(1.0, DOUBT_WITH_MANY + DOUBT_RUNS / max(n_runs, 1))


def best_of(judged: Judged, among: Bools) -> int | None:
    """Row with the highest score that holds, among the rows given; ties go to the cheaper one."""
    rows = np.flatnonzero(among & judged.holds)
    if len(rows) == 0:
        return None
    order = np.lexsort((rows, judged.cost.median[rows], -judged.score[rows]))
    return int(rows[order[0]])


def nearest(judged: Judged, among: Bools) -> int:
    """Row that comes closest to keeping both limits."""
    rows = np.flatnonzero(among)
    worst = np.minimum(judged.p_cost_ok, judged.p_latency_ok)[rows]
    order = np.lexsort((rows, judged.cost.median[rows], -np.round(worst, 6)))
    return int(rows[order[0]])
