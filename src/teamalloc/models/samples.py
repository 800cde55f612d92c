"""Runs as columns; the one place where Decimal money becomes float."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from teamalloc.data.run import Run, Tokens
from teamalloc.data.team import ROLES, TeamConfig
from teamalloc.models.encode import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """``n`` usable runs; nan = unknown."""

    runs: tuple[Run, ...]
    "(n,) as stored"
    teams: tuple[TeamConfig, ...]
    "distinct teams, most runs first"
    team: Ints
    "(n,) index of the run's team"
    task: Ints
    "(n,) index of the task; a run without a task id has one of its own; -1 = mean over tasks"
    reward: Floats
    "(n,) [0, 1]"
    pass_fail: Bools
    "(n,) the reward can only be 0 or 1"
    cost_usd: Floats
    "(n,) at the prices of the day"
    active_s: Floats
    "(n,) seconds"
    tokens: Floats
    "(n, 4) tokens of the lead and of each stage; 0 = no such agents"
    n_runs: Floats
    "(n,) runs behind the row"
    left_out: tuple[tuple[str, int], ...]
    "why runs are not here, or teach less than they hold: (reason, runs)"

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def n_tasks(self) -> int:
        """Distinct tasks."""
        return int(self.task.max(initial=-1)) + 1


def to_samples(runs: Sequence[Run]) -> Samples:
    """Columns of the runs that teach something about single attempts at a task.

    Left out, and counted: runs without a known team, sessions with several prompts until they are
    confirmed. A run cut short at a limit keeps its reward but not its cost and time, which are
    lower bounds.
    """
    left_out: Counter[str] = Counter()
    kept = [run for run in runs if _usable(run, left_out)]
    by_team: Counter[str] = Counter()
    for run in kept:
        by_team[str(run.team)] += run.n_runs
    order = sorted(by_team, key=lambda name: (-by_team[name], name))
    first = {str(run.team): run.team for run in kept if run.team is not None}
    index = {name: i for i, name in enumerate(order)}
    return Samples(
        runs=tuple(kept),
        teams=tuple(first[name] for name in order),
        team=np.array([index[str(run.team)] for run in kept], dtype=np.int64),
        task=_tasks(kept),
        reward=np.array([_nan(run.reward) for run in kept]),
        pass_fail=_pass_fail(kept),
        cost_usd=np.array([_cost_usd(run, left_out) for run in kept]),
        active_s=np.array([_active_s(run) for run in kept]),
        tokens=np.array([_role_tokens(run) for run in kept]).reshape(len(kept), len(ROLES)),
        n_runs=np.array([float(run.n_runs) for run in kept]),
        left_out=tuple(sorted(left_out.items())),
    )


def _usable(run: Run, left_out: Counter[str]) -> bool:
    if run.team is None:
        left_out["no model is known"] += 1
    elif run.multi_turn:
        left_out["several prompts in one session (allocate runs confirm)"] += 1
    else:
        return True
    return False


def _tasks(runs: Sequence[Run]) -> Ints:
    index: dict[str, int] = {}
    row = []
    for run in runs:
        name = run.task_id if run.task_id is not None else f"run {run.run_id}"
        row.append(-1 if run.n_runs > 1 else index.setdefault(name, len(index)))
    return np.array(row, dtype=np.int64)


def _pass_fail(runs: Sequence[Run]) -> Bools:
    """A reward is pass/fail if every single reward from the same source is 0 or 1."""
    graded_formats = {
        (run.source.format, run.reward_source)
        for run in runs
        if run.n_runs == 1 and run.reward not in (None, 0.0, 1.0)
    }
    return np.array(
        [
            run.n_runs == 1 and (run.source.format, run.reward_source) not in graded_formats
            for run in runs
        ],
        dtype=bool,
    )


def _cost_usd(run: Run, left_out: Counter[str]) -> float:
    cost = run.cost_usd
    if cost is None:
        left_out["cost unknown (still teaches reward and latency)"] += 1
    elif run.cut_short:
        left_out["cut short: cost and time are lower bounds (still teaches reward)"] += 1
    elif cost == 0:
        left_out["cost reported as 0 (still teaches reward and latency)"] += 1
    else:
        return float(cost)
    return float("nan")


def _active_s(run: Run) -> float:
    usable = not run.cut_short and run.active_s is not None and run.active_s > 0
    return _nan(run.active_s if usable else None)


def _role_tokens(run: Run) -> list[float]:
    """Tokens of the lead (with what has no seat: it is billed as well) and of each stage."""
    if run.team is None or run.cut_short or not run.of_role("lead"):
        return [float("nan")] * len(ROLES)
    totals = []
    for role in ROLES:
        agents = run.of_role(role) + (run.of_role("unknown") if role == "lead" else ())
        expected = run.team.n_agents(role) > 0
        known = [agent.tokens for agent in agents]
        if expected and (not known or any(t is None for t in known)):
            return [float("nan")] * len(ROLES)
        total = sum((t for t in known if t is not None), Tokens()).total
        if expected and total == 0:
            return [float("nan")] * len(ROLES)
        totals.append(float(total))
    return totals


def _nan(value: float | None) -> float:
    return float("nan") if value is None else float(value)
