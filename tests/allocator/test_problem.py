"""Limits of batches, against simulation."""

from __future__ import annotations

import math
from datetime import date

import numpy as np
import pytest

from planted import planted_runs
from teamalloc.allocator.problem import Problem, batch_cost, batch_latency
from teamalloc.data.prices import PriceBook
from teamalloc.errors import BadInput
from teamalloc.models.curve import Curve, Prediction
from teamalloc.models.fit import fit_forecaster

DAY = date(2026, 12, 1)
MEDIAN, SPREAD = math.log(3.0), 0.6


@pytest.fixture(scope="module")
def curve() -> Curve:
    return fit_forecaster(planted_runs(20), prices=PriceBook.load(), on=DAY).curves["cost"]


def prediction(epistemic: float = 0.0) -> Prediction:
    one = np.ones(1)
    return Prediction("cost", MEDIAN * one, epistemic * one, SPREAD * one, 0 * one)


def draws(n: int) -> np.ndarray:
    return np.exp(MEDIAN + SPREAD * np.random.default_rng(0).standard_normal((20_000, n)))


@pytest.mark.parametrize("n", [1, 5, 40])
def test_the_cost_of_a_batch_is_that_of_a_simulation(curve: Curve, n: int) -> None:
    batch = batch_cost(prediction(), curve, Problem(budget_usd=1.0, n_tasks=n))
    simulated = draws(n).sum(1)
    np.testing.assert_allclose(batch.mean, simulated.mean(), rtol=0.01)
    assert math.exp(batch.median[0]) == pytest.approx(np.median(simulated), rel=0.03)
    limit = float(np.quantile(simulated, 0.9))
    exact = type(batch)(batch.median, batch.epistemic_sd, batch.run_sd, 1.0, 1.0)
    assert exact.p_within(limit)[0] == pytest.approx(0.9, abs=0.02)


def test_what_is_not_known_of_the_average_does_not_shrink_with_the_batch(curve: Curve) -> None:
    batch = batch_cost(prediction(0.5), curve, Problem(budget_usd=1.0, n_tasks=10_000))
    assert batch.sd[0] == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("k", [1, 3, 10])
def test_the_makespan_is_that_of_a_simulation(curve: Curve, k: int) -> None:
    n = 30
    batch = batch_latency(prediction(), curve, Problem(latency_s=1.0, n_tasks=n, n_parallel=k))
    ends = []
    for row in draws(n)[:3000]:
        busy = [0.0] * k
        for seconds in row:
            free = busy.index(min(busy))
            busy[free] += seconds
        ends.append(max(busy))
    assert math.exp(batch.median[0]) == pytest.approx(np.median(ends), rel=0.05)


@pytest.mark.parametrize(
    "wrong",
    [{"budget_usd": 0}, {"budget_usd": -5}, {"budget_usd": math.nan}, {"budget_usd": math.inf},
     {"latency_s": 0}, {"confidence": 0.2}, {"confidence": 1.0}, {"n_tasks": 0}, {"n_parallel": 0}],
)  # fmt: skip
def test_nonsense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(BadInput):
        Problem(**wrong)  # type: ignore[arg-type]
