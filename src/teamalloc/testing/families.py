"""The contract of curve families."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import numpy as np

from teamalloc.data.team import TeamConfig
from teamalloc.models.encode import Floats, TeamColumns, encode
from teamalloc.models.families import Components, Family, Models, Prior, Target
from teamalloc.testing.contract import require, require_unique

EXACT = 1e-9
"relative error that rounding explains"


def check_family(
    family: Family, models: Models, teams: Sequence[TeamConfig], *, seed: int = 0
) -> None:
    """Check a curve family on ``k`` models and ``n`` teams of them.

    What must hold: the prior is proper, with one name for each of its ``p`` parameters; the parts
    of a team are finite or absent (-inf), at least one is there, and a reward is a single one;
    ``log`` is linear in the parameters and ``design`` its gradient; and what is said of a team
    depends on that team alone, neither on its company nor on an earlier question.

    Args:
        family: the family.
        models: the models, as a fit would name them.
        teams: teams of these models, best with and without each stage, of both modes.
        seed: of the parameters at which the parts are looked at.

    Raises:
        ContractBroken: with what was found.
    """
    require(family.target in get_args(Target), f"target is {family.target!r}")
    require(bool(teams), "there are no teams to check the family on")
    prior = family.prior(models)
    _check_prior(prior)
    rng = np.random.default_rng(seed)
    columns = encode(teams, models.who)
    theta, other = (rng.normal(prior.mean, prior.sd) for _ in range(2))
    parts = _ask(family, theta, columns, models)
    _check_parts(family, parts, [str(team) for team in teams])
    _check_linear(parts, _ask(family, other, columns, models), other - theta)
    _check_each_alone(family, theta, columns, models)


def _check_prior(prior: Prior) -> None:
    p = len(prior.names)
    require(p > 0, "the prior has no parameters")
    require_unique(prior.names, "names of parameters")
    for name, values in (("mean", prior.mean), ("sd", prior.sd)):
        require(values.shape == (p,), f"prior {name} has shape {values.shape}, not {(p,)}")
        require(bool(np.isfinite(values).all()), f"prior {name} is not finite: {values}")
    require(bool((prior.sd > 0).all()), f"prior sd is not positive: {prior.sd}")


def _ask(family: Family, theta: Floats, teams: TeamColumns, models: Models) -> Components:
    """The parts, their shapes checked, ``theta`` left as it was."""
    given = theta.copy()
    parts = family.components(theta, teams, models)
    require(bool(np.array_equal(theta, given)), "components changes the parameters it is given")
    n, p = len(teams), len(theta)
    shape = parts.log.shape
    require(len(shape) == 2 and shape[0] == n, f"log has shape {shape}, not ({n}, c)")
    require(
        parts.design.shape == (*shape, p),
        f"design has shape {parts.design.shape}, not {(*shape, p)}",
    )
    return parts


def _check_parts(family: Family, parts: Components, teams: Sequence[str]) -> None:
    n_parts = parts.log.shape[1]
    require(family.target != "reward" or n_parts == 1, f"a reward of {n_parts} parts")
    for team, log, design in zip(teams, parts.log, parts.design, strict=True):
        absent = np.isneginf(log)
        require(bool((np.isfinite(log) | absent).all()), f"{team}: parts {log}")
        require(not absent.all(), f"{team}: not one part")
        require(bool(np.isfinite(design).all()), f"{team}: its design is not finite")


def _check_linear(parts: Components, others: Components, step: Floats) -> None:
    require(
        bool(np.allclose(parts.design, others.design, rtol=EXACT, atol=EXACT)),
        "design depends on the parameters: log is not linear in them",
    )
    there, still_there = np.isfinite(parts.log), np.isfinite(others.log)
    require(bool((there == still_there).all()), "which parts a team has depends on the parameters")
    gained = others.log[there] - parts.log[there]
    expected = (parts.design @ step)[there]
    require(
        bool(np.allclose(gained, expected, rtol=1e-6, atol=1e-6)), "design is no gradient of log"
    )


def _check_each_alone(family: Family, theta: Floats, teams: TeamColumns, models: Models) -> None:
    together = _ask(family, theta, teams, models)
    for row in range(len(teams)):
        alone = _ask(family, theta, teams.take(slice(row, row + 1)), models)
        same = np.allclose(alone.log[0], together.log[row], rtol=EXACT, atol=EXACT) and np.allclose(
            alone.design[0], together.design[row], rtol=EXACT, atol=EXACT
        )
        require(same, f"what it says of team {row} depends on the other teams")
    nobody = _ask(family, theta, teams.take(slice(0, 0)), models)
    require(nobody.log.shape[1] == together.log.shape[1], "no teams have other parts than teams")
