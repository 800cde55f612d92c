"""How far to trust the curves: their error and their intervals on what they did not see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

import numpy as np

from teamalloc.data.evidence import load_evidence
from teamalloc.data.prices import PriceBook
from teamalloc.data.run import Run
from teamalloc.models.families import Target
from teamalloc.models.fit import DEFAULT_FAMILIES, Workbench
from teamalloc.models.holdout import Fold, HeldOut, hold_out
from teamalloc.models.normal import normal_quantile

UNITS: tuple[Literal["task", "team"], ...] = ("task", "team")
LEAST_UNITS = 3
"tasks (or teams) below which nothing can be said about held-out ones"


@dataclass(frozen=True, slots=True)
class Check:
    """One target, without its tasks or without its teams."""

    target: Target
    held_out: str
    '"tasks" or "teams"'
    n_runs: int
    "runs forecast"
    n_units: int
    "tasks or teams held out in turn"
    error: float | None
    "root mean square: points of 100 for reward, log for dollars and seconds; None = too few"
    error_of_constant: float | None
    "the same for the mean of the other runs"
    coverage_80: float | None
    "part of the runs inside their 80 % interval; None = too few, or pass/fail rewards"
    coverage_90: float | None
    "the same at 90 %"


def check_fit(runs: Sequence[Run], *, prices: PriceBook, on: date, seed: int = 0) -> list[Check]:
    """Hold out tasks, then teams, for each target."""
    bench = Workbench.of(runs, prices=prices, on=on, evidence=load_evidence())
    checks = []
    for target in DEFAULT_FAMILIES:
        fitted = bench.fit(target)
        for by in UNITS:
            fold = Fold(bench.samples, by, seed)
            out = hold_out(
                fold, fitted.observed, fitted.family, bench.models, fitted.posterior, bench.money
            )
            checks.append(_check(target, by, out, bench))
    return checks


def _check(target: Target, by: str, out: HeldOut, bench: Workbench) -> Check:
    samples = bench.samples
    unit = (samples.task if by == "task" else samples.team)[out.run]
    n_units = len(np.unique(unit))
    scale = 100.0 if target == "reward" else 1.0
    enough = n_units >= LEAST_UNITS
    graded = not (target == "reward" and samples.pass_fail[out.run].all())

    def coverage(level: float) -> float | None:
        if not enough or not graded:
            return None
        z = np.abs(out.actual - out.mean) / out.sd
        return float(np.mean(z <= normal_quantile(0.5 + level / 2.0)))

    def error(guess: np.ndarray) -> float | None:
        return scale * float(np.sqrt(np.mean((out.actual - guess) ** 2))) if enough else None

    return Check(
        target=target,
        held_out=f"{by}s",
        n_runs=len(out.run),
        n_units=n_units,
        error=error(out.mean),
        error_of_constant=error(out.constant),
        coverage_80=coverage(0.8),
        coverage_90=coverage(0.9),
    )
