"""A recommendation as a plan: the team, its limits, and what each seat is expected to use."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from teamalloc.allocator.answer import Answer
from teamalloc.allocator.recommend import knows_latency
from teamalloc.data.plan import Plan, SeatForecast
from teamalloc.data.run import Limits
from teamalloc.data.team import ROLES, Seat, TeamConfig, parse_team
from teamalloc.models.encode import Floats, encode
from teamalloc.models.forecast import Forecaster
from teamalloc.models.normal import normal_quantile
from teamalloc.models.observe import HELPERS, LEAD, stage_spread

LEVELS = (0.1, 0.5, 0.9)
SCORES = np.array([normal_quantile(level) for level in LEVELS])


def to_plan(answer: Answer) -> Plan:
    """The plan of a recommendation that holds; limits are those of one run."""
    problem, forecaster = answer.question.problem, answer.forecaster
    team = parse_team(answer.recommendation.best.team)
    budget = None if problem.budget_usd is None else problem.budget_usd / problem.n_tasks
    return Plan(
        team=team,
        limits=Limits(
            None if budget is None else Decimal(repr(round(budget, 6))),
            problem.latency_s if problem.n_tasks == 1 else None,
        ),
        forecasts=tuple(seat_forecast(seat, team, forecaster) for seat in team.seats),
        based_on=forecaster.digest,
    )


def seat_forecast(seat: Seat, team: TeamConfig, forecaster: Forecaster) -> SeatForecast:
    """Quantiles of what one agent of a seat uses."""
    tokens = _agent_tokens(seat, team, forecaster)
    usd = float(forecaster.usd_per_token[forecaster.models.who.index(seat.who)])
    seconds = _agent_seconds(seat, team, forecaster)
    return SeatForecast(
        seat=str(seat),
        levels=LEVELS,
        tokens=None if tokens is None else _numbers(tokens),
        cost_usd=None if tokens is None or np.isnan(usd) else _numbers(tokens * usd),
        active_s=None if seconds is None else _numbers(seconds),
    )


def _agent_tokens(seat: Seat, team: TeamConfig, forecaster: Forecaster) -> Floats | None:
    """(levels,); None where only totals of whole teams were logged."""
    curve = forecaster.curves["cost"]
    if not curve.noise_is_by_role:
        return None
    columns = encode([team], forecaster.models.who)
    parts = forecaster.family("cost").components(curve.theta, columns, forecaster.models)
    at = ROLES.index(seat.role)
    spread = stage_spread(float(curve.noise[LEAD]), float(curve.noise[HELPERS]), columns.count)
    design = parts.design[0, at]
    p = len(curve.theta)
    variance = spread[0, at] ** 2 + curve.s_task**2 + design @ curve.cov[:p, :p] @ design
    share = 1.0 / team.n_agents(seat.role)
    quantiles = parts.log[0, at] + SCORES * np.sqrt(variance)
    return np.asarray(np.exp(quantiles) * share, dtype=float)


def _agent_seconds(seat: Seat, team: TeamConfig, forecaster: Forecaster) -> Floats | None:
    """(levels,) time at work of one agent; None without latency data."""
    if not knows_latency(forecaster):
        return None
    curve = forecaster.curves["latency"]
    alone = (
        TeamConfig(team.lead, (Seat(seat.role, seat.model, 1, seat.effort),))
        if seat.role != "lead"
        else team
    )
    columns = encode([alone], forecaster.models.who)
    parts = forecaster.family("latency").components(curve.theta, columns, forecaster.models)
    at = ROLES.index(seat.role)
    p = len(curve.theta)
    design = parts.design[0, at]
    variance = curve.noise[0] ** 2 + curve.s_task**2 + design @ curve.cov[:p, :p] @ design
    return np.asarray(np.exp(parts.log[0, at] + SCORES * np.sqrt(variance)), dtype=float)


def _numbers(values: Floats) -> tuple[float, ...]:
    return tuple(float(f"{value:.6g}") for value in values)
