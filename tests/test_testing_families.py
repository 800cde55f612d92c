"""The contract of curve families, tried on a family kept as simple as can be and on broken ones."""

from __future__ import annotations

import re
from dataclasses import fields, replace

import numpy as np
import pytest

from teamalloc.data.team import TeamConfig, parse_team
from teamalloc.models.encode import Floats, TeamColumns
from teamalloc.models.families import Components, Family, Models, Prior, Target
from teamalloc.testing import ContractBroken, check_family

WHO = ("luna", "sol@high", "sol@low")
# What is known of the models does not matter to the families below.
MODELS = Models(WHO, *(np.zeros(len(WHO)) for _ in fields(Models)[1:]))

TEAMS: list[TeamConfig] = [
    parse_team(text)
    for text in (
        "lead=sol@high",
        "lead=luna planner=luna*8",
        "lead=sol@low implementer=luna*2 implementer=sol@low async",
        "lead=sol@high planner=luna verifier=sol@low*4 blocking",
    )
]


class PerAgent:
    """log tokens of the lead = a + b async; of all helpers = a + c + log n."""

    name = "per_agent"
    target: Target = "cost"

    def prior(self, models: Models) -> Prior:
        return Prior(
            ("a", "b", "c"),
            np.array([2.0, 0.0, -1.0]),
            np.array([1.0, 0.5, 0.5]),
            np.array([True, False, False]),
        )

    def components(self, theta: Floats, teams: TeamColumns, models: Models) -> Components:
        n_helpers = teams.count.sum(1)
        design = np.zeros((len(teams), 2, 3))
        design[:, :, 0] = 1.0
        design[:, 1, 2] = 1.0
        design[:, 0, 1] = teams.is_async
        with np.errstate(divide="ignore"):
            offset = np.column_stack([np.zeros(len(teams)), np.log(n_helpers)])
        return Components(design @ theta + offset, design)


def test_a_family_that_keeps_the_contract() -> None:
    check_family(PerAgent(), MODELS, TEAMS)


class WrongTarget(PerAgent):
    target = "money"  # type: ignore[assignment]


class TwoRewards(PerAgent):
    target: Target = "reward"


class NameTwice(PerAgent):
    def prior(self, models: Models) -> Prior:
        return replace(super().prior(models), names=("a", "b", "b"))


class NoWidth(PerAgent):
    def prior(self, models: Models) -> Prior:
        return replace(super().prior(models), sd=np.array([1.0, 0.0, 0.5]))


class ShortMean(PerAgent):
    def prior(self, models: Models) -> Prior:
        return replace(super().prior(models), mean=np.zeros(2))


class Changed(PerAgent):
    """A family whose parts are those of ``PerAgent``, but for one thing."""

    def components(self, theta: Floats, teams: TeamColumns, models: Models) -> Components:
        parts = super().components(theta, teams, models)
        return self.change(parts, theta, teams)

    def change(self, parts: Components, theta: Floats, teams: TeamColumns) -> Components:
        raise NotImplementedError


class Missing(Changed):
    def change(self, parts: Components, theta: Floats, teams: TeamColumns) -> Components:
        return replace(parts, log=np.where(np.isfinite(parts.log), parts.log, np.nan))


class Nothing(Changed):
    def change(self, parts: Components, theta: Floats, teams: TeamColumns) -> Components:
        return replace(parts, log=np.full_like(parts.log, -np.inf))


class Flat(Changed):
    def change(self, parts: Components, theta: Floats, teams: TeamColumns) -> Components:
        return replace(parts, log=parts.log[:, 0])


class Curved(Changed):
    def change(self, parts: Components, theta: Floats, teams: TeamColumns) -> Components:
        return replace(parts, design=parts.design * theta[0], log=parts.log * theta[0] / 2)


class WrongGradient(Changed):
    def change(self, parts: Components, theta: Floats, teams: TeamColumns) -> Components:
        return replace(parts, design=2 * parts.design)


class Relative(Changed):
    def change(self, parts: Components, theta: Floats, teams: TeamColumns) -> Components:
        return replace(parts, log=parts.log - len(teams))


class Careless(Changed):
    def change(self, parts: Components, theta: Floats, teams: TeamColumns) -> Components:
        theta += 1.0
        return parts


@pytest.mark.parametrize(
    ("family", "complaint"),
    [
        (WrongTarget(), "target is 'money'"),
        (TwoRewards(), "a reward of 2 parts"),
        (NameTwice(), "names of parameters repeat: ['b']"),
        (NoWidth(), "sd is not positive"),
        (ShortMean(), "mean has shape (2,), not (3,)"),
        (Missing(), "lead=sol@high blocking: parts"),
        (Nothing(), "not one part"),
        (Flat(), "log has shape (4,)"),
        (Curved(), "design depends on the parameters"),
        (WrongGradient(), "no gradient"),
        (Relative(), "depends on the other teams"),
        (Careless(), "changes the parameters"),
    ],
)
def test_a_broken_family_is_found(family: Family, complaint: str) -> None:
    with pytest.raises(ContractBroken, match=re.escape(complaint)):
        check_family(family, MODELS, TEAMS)
