"""What is asked: limits, the size of the batch, how sure one must be; and whether a team keeps them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from teamalloc.errors import BadInput
from teamalloc.models.curve import Curve, Prediction
from teamalloc.models.encode import Floats
from teamalloc.models.normal import normal_cdf, normal_quantile

DRAWS = 400
SPREADS = (0.1, 0.25, 0.5, 0.8, 1.2)
EXACT_TASKS = 2000
"beyond this many tasks a makespan is the total time over the workers"


@dataclass(frozen=True, slots=True)
class Problem:
    """Limits for a batch of tasks; None = no such limit."""

    budget_usd: float | None = None
    "US dollars for all tasks together"
    latency_s: float | None = None
    "seconds for the whole batch"
    confidence: float = 0.9
    "a limit holds if its p_ok reaches this"
    n_tasks: int = 1
    "tasks in the batch"
    n_parallel: int = 1
    "tasks worked on at the same time"
    seed: int = 0
    "of the simulated schedules of a batch"

    def __post_init__(self) -> None:
        for name, value, unit in (
            ("a budget", self.budget_usd, "dollars, such as 50"),
            ("a latency limit", self.latency_s, "a duration, such as 30m"),
        ):
            if value is not None and not (math.isfinite(value) and value > 0):
                raise BadInput(
                    f"{name} must be more than 0, not {value:g}.", remedy=f"Give {unit}."
                )
        if not 0.5 <= self.confidence < 1.0:
            raise BadInput(
                f"confidence must be at least 0.5 and below 1, not {self.confidence:g}.",
                remedy="0.9 means: kept nine times in ten.",
            )
        if self.n_tasks < 1 or self.n_parallel < 1:
            raise BadInput("tasks and parallel must be at least 1.")


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """A log-normal total for the whole batch: the log of its median and its two spreads."""

    median: Floats
    "(n,) log"
    epistemic_sd: Floats
    "(n,)"
    run_sd: Floats
    "(n,)"
    upper: float
    "conformal factor above the median"
    lower: float
    "and below"

    @property
    def sd(self) -> Floats:
        """(n,) predictive sd of the log."""
        return np.sqrt(self.epistemic_sd**2 + self.run_sd**2)

    def p_within(self, limit: float | None) -> Floats:
        """(n,) predictive probability of staying within the limit."""
        if limit is None:
            return np.ones(len(self.median))
        z = (math.log(limit) - self.median) / np.maximum(self.sd, 1e-9)
        return normal_cdf(z / np.where(z > 0, self.upper, self.lower))

    def p_quantile_within(self, limit: float | None, confidence: float) -> Floats:
        """(n,) probability that the *true* quantile at this confidence is within the limit."""
        if limit is None:
            return np.ones(len(self.median))
        need = normal_quantile(confidence) * self.upper * self.run_sd
        gap = math.log(limit) - self.median - need
        return normal_cdf(gap / np.maximum(self.epistemic_sd, 1e-9))

    def quantile(self, level: float) -> Floats:
        """(n,) quantile of the total, in dollars or seconds."""
        factor = self.upper if level > 0.5 else self.lower
        return np.asarray(
            np.exp(self.median + normal_quantile(level) * factor * self.sd), dtype=float
        )

    @property
    def mean(self) -> Floats:
        """(n,) expected total, in dollars or seconds."""
        return np.asarray(np.exp(self.median + 0.5 * self.sd**2), dtype=float)


def batch_cost(one: Prediction, curve: Curve, problem: Problem) -> Batch:
    """Dollars of all tasks: a sum of independent runs, with what is not known of the average shared."""
    n = max(problem.n_tasks / curve.unit_runs, 1.0)
    variance = np.log1p(np.expm1(one.run_sd**2) / n)
    median = one.mean + math.log(problem.n_tasks) + 0.5 * (one.run_sd**2 - variance)
    return Batch(median, one.epistemic_sd, np.sqrt(variance), curve.upper, curve.lower)


def batch_latency(one: Prediction, curve: Curve, problem: Problem) -> Batch:
    """Seconds until the last task is done, each worker taking the next task as it becomes free."""
    if problem.n_tasks == 1:
        return Batch(one.mean, one.epistemic_sd, one.run_sd, curve.upper, curve.lower)
    shift, sd = _makespans(problem)
    return Batch(
        one.mean + np.interp(one.run_sd, SPREADS, shift),
        one.epistemic_sd,
        np.interp(one.run_sd, SPREADS, sd),
        curve.upper,
        curve.lower,
    )


@lru_cache(maxsize=8)
def _makespans(problem: Problem) -> tuple[Floats, Floats]:
    """Mean and sd of the log makespan of runs with median 1, for each spread in ``SPREADS``."""
    rng = np.random.default_rng(problem.seed)
    n = min(problem.n_tasks, EXACT_TASKS)
    z = rng.standard_normal((n, DRAWS))
    shift, sd = np.empty(len(SPREADS)), np.empty(len(SPREADS))
    for i, spread in enumerate(SPREADS):
        busy = np.zeros((min(problem.n_parallel, n), DRAWS))
        column = np.arange(DRAWS)
        for times in np.exp(spread * z):
            busy[busy.argmin(0), column] += times
        log = np.log(busy.max(0)) + math.log(problem.n_tasks / n)
        shift[i], sd[i] = log.mean(), log.std()
    return shift, sd
