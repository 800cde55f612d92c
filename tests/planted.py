"""A planted world: runs of known teams whose expected reward, cost and time are formulas."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import numpy as np

from teamalloc.data.run import AgentUsage, Run, Source, Tokens, UsageSlice
from teamalloc.data.team import STAGES, Seat, TeamConfig

LUNA, SOL = "gpt-5.6-luna", "gpt-5.6-sol"
USD_PER_TOKEN = {LUNA: 0.2e-6, SOL: 4e-6}
"fresh input on 2026-12-01, by the price list"
START = datetime(2026, 11, 1, 12, tzinfo=UTC)


def true_reward(team: TeamConfig) -> float:
    """The lead sets the level, planners help, cheap implementers hurt."""
    level = {LUNA: -0.4, SOL: 0.6}[team.lead.model]
    planners = 0.35 * math.log1p(team.n_agents("planner")) / math.log1p(4)
    hurt = -0.3 if any(s.model == LUNA for s in team.stage("implementer")) else 0.0
    return 1.0 / (1.0 + math.exp(-(level + planners + hurt)))


def true_tokens(team: TeamConfig, role: str) -> float:
    """A million for the lead, 400,000 for each helper."""
    return 1e6 if role == "lead" else 4e5 * team.n_agents(role)  # type: ignore[arg-type]


def true_cost_usd(team: TeamConfig) -> float:
    """Tokens times price."""
    total = true_tokens(team, "lead") * USD_PER_TOKEN[team.lead.model]
    return total + sum(4e5 * seat.count * USD_PER_TOKEN[seat.model] for seat in team.helpers)


def true_seconds(team: TeamConfig) -> float:
    """Ten minutes for the lead, five for each stage."""
    return 600.0 + 300.0 * sum(bool(team.stage(stage)) for stage in STAGES)


def planted_runs(n: int = 120, n_tasks: int = 20, seed: int = 0, noise: float = 0.15) -> list[Run]:
    """Runs of a dozen teams on tasks of different size; everything is fresh input."""
    rng = np.random.default_rng(seed)
    size = 0.3 * rng.standard_normal(n_tasks)
    teams = planted_teams()
    runs = []
    for i in range(n):
        task, team = int(rng.integers(n_tasks)), teams[int(rng.integers(len(teams)))]
        luck = np.exp(size[task] + noise * rng.standard_normal(5))
        runs.append(
            Run(
                run_id=f"run{i:04d}",
                team=team,
                source=Source("planted", 1, f"session{i:04d}", f"{i:064d}"),
                task_id=f"task-{task:02d}",
                agents=tuple(
                    _usage(team, role, luck[k])
                    for k, role in enumerate(("lead", *STAGES))
                    if team.n_agents(role)
                ),  # type: ignore[arg-type]
                reward=float(np.clip(true_reward(team) + 0.1 * rng.standard_normal(), 0, 1)),
                reward_source="file",
                active_s=float(true_seconds(team) * luck[4]),
                assigned=True,
                started_at=START + timedelta(hours=i),
            )
        )
    return runs


def planted_teams() -> list[TeamConfig]:
    """Solo leads, planners of both tiers in several numbers, implementers."""
    teams = [TeamConfig(Seat("lead", lead)) for lead in (LUNA, SOL)]
    for lead in (LUNA, SOL):
        for helper in (LUNA, SOL):
            for n in (1, 4, 8):
                teams.append(TeamConfig(Seat("lead", lead), (Seat("planner", helper, n),)))
            teams.append(TeamConfig(Seat("lead", lead), (Seat("implementer", helper, 2),)))
    return teams


def _usage(team: TeamConfig, role: str, luck: float) -> AgentUsage:
    seats = [team.lead] if role == "lead" else list(team.stage(role))  # type: ignore[arg-type]
    tokens = Tokens(fresh_input=int(true_tokens(team, role) * luck))
    usd = Decimal(tokens.fresh_input) * Decimal(repr(USD_PER_TOKEN[seats[0].model]))
    piece = UsageSlice(seats[0].model, tokens, day=START.date(), cost_list_usd=usd)
    return AgentUsage(role, role, None if role == "lead" else "lead", usage=(piece,))  # type: ignore[arg-type]
