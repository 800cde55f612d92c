"""Sums of log-normals and the normal distribution, against simulation and the standard library."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from teamalloc.models.families import Components, flattening
from teamalloc.models.links import add_parts
from teamalloc.models.normal import normal_cdf


def test_a_sum_of_parts_has_the_moments_of_a_simulation() -> None:
    log = np.array([[0.0, 1.0, -np.inf], [0.5, 0.2, 0.9]])
    price = np.log(np.array([[2.0, 0.5, 1.0], [1.0, 1.0, 3.0]]))
    spread = np.array([[0.4, 0.6, 0.5], [0.3, 0.3, 0.5]])
    total = add_parts(Components(log, np.ones((2, 3, 1))), price, spread)
    z = np.random.default_rng(0).standard_normal((200_000, 2, 3))
    drawn = np.exp(log + price + spread * z).sum(2)
    mean = np.exp(total.log + 0.5 * total.variance)
    sd = mean * np.sqrt(np.expm1(total.variance))
    np.testing.assert_allclose(mean, drawn.mean(0), rtol=0.01)
    np.testing.assert_allclose(sd, drawn.std(0), rtol=0.03)
    # All parts share the one parameter: the log of the sum moves as it does.
    np.testing.assert_allclose(total.gradient, 1.0)


def test_normal_cdf_is_that_of_the_standard_library() -> None:
    z = np.linspace(-9, 9, 181)
    np.testing.assert_allclose(
        normal_cdf(z), [NormalDist().cdf(x) for x in z], rtol=1e-9, atol=1e-15
    )


@pytest.mark.parametrize("s_task", [0.3, 0.9, 1.5])
def test_flattening_is_close_to_the_mean_over_tasks(s_task: float) -> None:
    u = s_task * np.random.default_rng(1).standard_normal(400_000)
    for eta in (-1.0, 0.4, 1.5):
        over_tasks = np.mean(1.0 / (1.0 + np.exp(-(eta + u))))
        assert 1.0 / (1.0 + np.exp(-flattening(s_task) * eta)) == pytest.approx(
            over_tasks, abs=0.01
        )
