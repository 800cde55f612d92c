"""Why nothing fits, and the smallest changes of the question that would make something fit."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from teamalloc.allocator.judge import Judged
from teamalloc.allocator.problem import Problem
from teamalloc.allocator.space import SearchSpace
from teamalloc.models.encode import Bools, Floats


@dataclass(frozen=True, slots=True)
class Repair:
    """One change after which a team holds."""

    change: str
    '"budget", "latency", "budget and latency", "tasks", "confidence"'
    budget_usd: float | None
    "US dollars to ask with; None = no limit was asked"
    latency_s: float | None
    "seconds to ask with; None = no limit was asked"
    confidence: float
    n_tasks: int
    "tasks to ask with"
    team: str
    "the team that then holds"


def find_repairs(
    problem: Problem, judged: Judged, among: Bools, space: SearchSpace
) -> tuple[Repair, ...]:
    """The cheapest single changes, then the smallest common one."""
    cells = np.flatnonzero(among)
    usd = judged.cost.quantile(problem.confidence)[cells]
    seconds = judged.latency.quantile(problem.confidence)[cells]
    need_usd = usd / problem.budget_usd if problem.budget_usd is not None else np.zeros(len(cells))
    need_s = seconds / problem.latency_s if problem.latency_s is not None else np.zeros(len(cells))
    found: list[Repair] = []

    def add(change: str, cell: int, confidence: float, *, more_usd: bool, more_s: bool) -> None:
        at = int(np.flatnonzero(cells == cell)[0])
        budget, latency = problem.budget_usd, problem.latency_s
        found.append(
            Repair(
                change,
                _round_up(float(usd[at])) if more_usd and budget is not None else budget,
                _round_up(float(seconds[at])) if more_s and latency is not None else latency,
                confidence,
                problem.n_tasks,
                str(space.team(cell)),
            )
        )

    if problem.budget_usd is not None and np.any(need_s <= 1.0):
        add(
            "budget",
            _least(cells, need_usd, need_s <= 1.0),
            problem.confidence,
            more_usd=True,
            more_s=False,
        )
    if problem.latency_s is not None and np.any(need_usd <= 1.0):
        add(
            "latency",
            _least(cells, need_s, need_usd <= 1.0),
            problem.confidence,
            more_usd=False,
            more_s=True,
        )
    if not found:
        both = _least(cells, np.maximum(need_usd, need_s), np.ones(len(cells), dtype=bool))
        add("budget and latency", both, problem.confidence, more_usd=True, more_s=True)
    likely = np.minimum(judged.p_cost_ok, judged.p_latency_ok)[cells]
    sure = float(np.floor(100.0 * likely.max()) / 100.0)
    if sure >= 0.5:
        add("confidence", int(cells[likely.argmax()]), sure, more_usd=False, more_s=False)
    return tuple(found)


def _least(cells: np.ndarray, need: Floats, allowed: Bools) -> int:
    rows = np.flatnonzero(allowed)
    return int(cells[rows[np.argmin(need[rows])]])


def _round_up(value: float) -> float:
    """Up to two digits, so that the number printed is enough when it is asked with."""
    if value <= 0:
        return value
    unit = 10.0 ** (np.floor(np.log10(value)) - 1.0)
    return float(np.round(np.ceil(value * 1.0001 / unit) * unit, 10))


def repaired(problem: Problem, repair: Repair) -> Problem:
    """The question with this change."""
    return replace(
        problem,
        budget_usd=repair.budget_usd,
        latency_s=repair.latency_s,
        confidence=repair.confidence,
        n_tasks=repair.n_tasks,
    )
