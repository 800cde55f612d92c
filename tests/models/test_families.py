"""The built-in curves: the contract, and what their docstrings promise."""

from __future__ import annotations

import numpy as np
import pytest

from teamalloc.data.evidence import load_evidence
from teamalloc.data.team import parse_team
from teamalloc.models.encode import encode
from teamalloc.models.families import families
from teamalloc.models.families.critical_path import largest_score
from teamalloc.models.families.saturating import gain_shape
from teamalloc.models.tiers import describe_models
from teamalloc.testing import check_family

WHO = ("gpt-5.6-luna", "gpt-5.6-sol", "gpt-5.6-sol@high", "unheard-of")
PRICES = {"gpt-5.6-luna": 1.2, "gpt-5.6-sol": 20.0, "unheard-of": None}
MODELS = describe_models(WHO, evidence=load_evidence(), output_usd_per_mtok=PRICES)
TEAMS = [
    parse_team(text)
    for text in (
        "lead=gpt-5.6-sol",
        "lead=gpt-5.6-luna planner=gpt-5.6-luna*8",
        "lead=gpt-5.6-sol@high implementer=gpt-5.6-luna*2 implementer=gpt-5.6-sol async",
        "lead=unheard-of planner=gpt-5.6-luna verifier=gpt-5.6-sol*4 blocking",
    )
]


@pytest.mark.parametrize("name", sorted(families(load_evidence().prior)))
def test_contract(name: str) -> None:
    check_family(families(load_evidence().prior)[name], MODELS, TEAMS)


def test_gains_are_one_at_four_helpers_and_planners_go_on() -> None:
    shape = gain_shape(np.array([[0, 0, 0], [4, 4, 4], [16, 8, 8]]))
    np.testing.assert_allclose(shape[0], 0.0)
    np.testing.assert_allclose(shape[1], 1.0)
    assert shape[2, 0] > 1.7
    assert np.all(shape[2, 1:] < 1.04)


def test_the_largest_of_n_normals_is_that_of_a_simulation() -> None:
    z = np.random.default_rng(0).standard_normal((100_000, 16))
    for n in (1, 2, 4, 8, 16):
        simulated = z[:, :n].max(1).mean()
        assert largest_score(np.array([[n]]))[0, 0] == pytest.approx(simulated, abs=0.05)


def test_what_the_published_prior_says() -> None:
    evidence = load_evidence()
    who = ("gpt-5.6-luna", "gpt-5.6-terra", "gpt-5.6-sol")
    output = {"gpt-5.6-luna": 1.2, "gpt-5.6-terra": 12.0, "gpt-5.6-sol": 20.0}
    models = describe_models(who, evidence=evidence, output_usd_per_mtok=output)
    curve = families(evidence.prior)["saturating"]
    theta = curve.prior(models).mean

    def logit(team: str) -> float:
        return float(
            curve.components(theta, encode([parse_team(team)], models.who), models).log[0, 0]
        )

    solo = logit("lead=gpt-5.6-sol")
    assert logit("lead=gpt-5.6-terra") < solo
    assert logit("lead=gpt-5.6-sol implementer=gpt-5.6-luna*4") < solo
    four = logit("lead=gpt-5.6-sol planner=gpt-5.6-luna*4")
    sixteen = logit("lead=gpt-5.6-sol planner=gpt-5.6-luna*16")
    assert solo < four < sixteen
    plan_only = logit("lead=gpt-5.6-sol planner=gpt-5.6-sol*4")
    every_stage = logit(
        "lead=gpt-5.6-sol planner=gpt-5.6-sol*4 implementer=gpt-5.6-sol*4 verifier=gpt-5.6-sol*4"
    )
    # Delegating only planning matches delegating every stage.
    assert every_stage == pytest.approx(plan_only, abs=0.08)


def test_tiers_are_ranks_by_strength() -> None:
    at = dict(zip(MODELS.who, MODELS.tier, strict=True))
    assert at["gpt-5.6-luna"] == -1.0
    assert at["gpt-5.6-sol"] == at["gpt-5.6-sol@high"] == 1.0
    assert at["unheard-of"] == 0.0
    assert not MODELS.priced[WHO.index("unheard-of")]
