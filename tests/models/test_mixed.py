"""The estimator against a second implementation: the dense Gaussian posterior."""

from __future__ import annotations

import numpy as np
import pytest

from teamalloc.models.encode import Floats
from teamalloc.models.families import Prior
from teamalloc.models.mixed import Linearise, Rows, Scales, fit_mixed


def linear(design: Floats) -> Linearise:
    return lambda theta: (design @ theta, design)


def prior(p: int, sd: float) -> Prior:
    return Prior(
        tuple(f"b{i}" for i in range(p)), np.zeros(p), np.full(p, sd), np.zeros(p, dtype=bool)
    )


def test_known_scales_give_the_dense_gaussian_posterior() -> None:
    rng = np.random.default_rng(1)
    n, p, n_tasks, n_teams = 40, 4, 6, 3
    design = rng.standard_normal((n, p))
    task, team = rng.integers(n_tasks, size=n), rng.integers(-1, n_teams, size=n)
    y = rng.standard_normal(n)
    scales = Scales(tau=1.3, task=0.7, team=0.4, noise=np.array([0.5, 0.9]))
    group, factor = rng.integers(2, size=n), rng.uniform(0.3, 2.0, n)

    rows = Rows(y, task, team, group, factor)
    found = fit_mixed(
        linear(design), rows, prior(p, 0.8), scales, n_teams=n_teams, learn_scales=False
    )

    # All unknowns at once: theta, team effects, task effects; no elimination.
    teams = np.eye(n_teams + 1)[team][:, :n_teams]
    everything = np.hstack([design, teams, np.eye(n_tasks)[task]])
    width = np.concatenate([np.full(p, 1.3 * 0.8), np.full(n_teams, 0.4), np.full(n_tasks, 0.7)])
    weight = 1.0 / (scales.noise[group] ** 2 * factor)
    cov = np.linalg.inv(everything.T @ (everything * weight[:, None]) + np.diag(width**-2.0))
    mean = cov @ everything.T @ (weight * y)
    k = p + n_teams
    np.testing.assert_allclose(
        np.concatenate([found.theta, found.team_effect]), mean[:k], atol=1e-9
    )
    np.testing.assert_allclose(found.cov, cov[:k, :k], atol=1e-9)


def test_scales_are_learned_from_many_rows() -> None:
    rng = np.random.default_rng(2)
    n, n_tasks = 3000, 150
    task = rng.integers(n_tasks, size=n)
    design = rng.standard_normal((n, 2))
    y = (
        design @ [0.5, -0.2]
        + (0.8 * rng.standard_normal(n_tasks))[task]
        + 0.3 * rng.standard_normal(n)
    )
    rows = Rows(y, task, np.full(n, -1), np.zeros(n, dtype=np.int64), np.ones(n))
    start = Scales(tau=1.0, task=0.3, team=0.1, noise=np.array([1.0]))
    found = fit_mixed(linear(design), rows, prior(2, 1.0), start)
    assert found.scales.task == pytest.approx(0.8, rel=0.15)
    assert found.scales.noise[0] == pytest.approx(0.3, rel=0.05)
    np.testing.assert_allclose(found.theta, [0.5, -0.2], atol=0.03)


@pytest.mark.parametrize("pass_fail", [False, True])
def test_the_logit_link_finds_the_odds_of_graded_and_pass_fail_rewards(pass_fail: bool) -> None:
    rng = np.random.default_rng(3)
    n = 4000
    design = np.column_stack([np.ones(n), rng.integers(0, 2, n)])
    p = 1.0 / (1.0 + np.exp(-(design @ [-0.5, 1.2])))
    y = (rng.random(n) < p).astype(float) if pass_fail else rng.beta(12 * p, 12 * (1 - p))
    rows = Rows(y, np.full(n, -1), np.full(n, -1), np.full(n, int(pass_fail)), np.ones(n))
    scales = Scales(tau=1.0, task=0.5, team=0.1, noise=np.array([0.3, 1.0]), fixed_noise=(1,))
    found = fit_mixed(linear(design), rows, prior(2, 3.0), scales, link="logit")
    np.testing.assert_allclose(found.theta, [-0.5, 1.2], atol=0.12 if pass_fail else 0.05)
    # A beta with twelve pseudo-trials has 1/13 of the variance of a coin.
    if not pass_fail:
        assert found.scales.noise[0] == pytest.approx(13**-0.5, rel=0.1)


def test_without_rows_the_prior_stays() -> None:
    empty = np.zeros(0, dtype=np.int64)
    rows = Rows(np.zeros(0), empty, empty, empty, np.zeros(0))
    scales = Scales(tau=1.0, task=0.5, team=0.1, noise=np.array([0.3]))
    found = fit_mixed(linear(np.zeros((0, 2))), rows, prior(2, 0.7), scales)
    np.testing.assert_allclose(found.theta, 0.0)
    np.testing.assert_allclose(np.sqrt(np.diag(found.cov)), 0.7)
    assert found.scales.tau == pytest.approx(1.0)
