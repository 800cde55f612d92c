"""Curve families: one file each; a family says how a target depends on the team.

To add a family: one file with a class that keeps the ``Family`` protocol, one line in
``families()``; ``teamalloc.testing.check_family`` is the contract it passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from teamalloc.data.evidence import PriorTable
from teamalloc.models.encode import Bools, Floats, TeamColumns

Target = Literal["reward", "cost", "latency"]


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """What is believed of the parameters before the user's own runs."""

    names: tuple[str, ...]
    "(p,) one word for each parameter"
    mean: Floats
    "(p,)"
    sd: Floats
    "(p,)"
    is_level: Bools
    "(p,) True: sets the user's scale, so its width says nothing of the other figures' width"


class PriorBuilder:
    """Collects parameters in order."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, float, float, bool]] = []

    def add(self, name: str, mean: float, sd: float, *, is_level: bool = False) -> None:
        """One parameter."""
        self._rows.append((name, mean, sd, is_level))

    def build(self) -> Prior:
        """All parameters as arrays."""
        names, mean, sd, is_level = zip(*self._rows, strict=True)
        return Prior(
            names,
            np.array(mean, dtype=float),
            np.array(sd, dtype=float),
            np.array(is_level, dtype=bool),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Models:
    """The models (``model@effort``) a fit speaks of, ``k`` of them, and what is known beforehand."""

    who: tuple[str, ...]
    "(k,) sorted"
    tier: Floats
    "(k,) rank by strength, spread over [-1, 1]; models alike in all but effort share it"
    solo_reward: Floats
    "(k,) logit of the published mean reward of the model alone; nan = none"
    effort_reward: Floats
    "(k,) by how much the published logit at this effort exceeds that at medium; 0 = not known"
    solo_tokens: Floats
    "(k,) published log tokens of the model alone; nan = none"
    solo_s: Floats
    "(k,) published log seconds of the model alone; nan = none"
    priced: Bools
    "(k,) a price is known; otherwise the fit must find what a token costs from the totals"
    implied: Bools
    "(k,) without a price, but the total costs of runs imply one"

    @property
    def n(self) -> int:
        """Number of models."""
        return len(self.who)


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """Parts whose exponentials add up to a target: ``n`` teams, ``c`` parts, ``p`` parameters."""

    log: Floats
    "(n, c) log of the median of each part; -inf = the team has no such part"
    design: Floats
    "(n, c, p) gradient of ``log``"


def flattening(s_task: float) -> float:
    """By how much task effects flatten the logit of the mean reward.

    The mean of a logistic over N(eta, s^2) is close to the logistic of eta / sqrt(1 + c s^2) with
    c = (16 sqrt(3) / (15 pi))^2 (Zeger, Liang and Albert 1988).
    """
    return float(1.0 / np.sqrt(1.0 + (16.0 * np.sqrt(3.0) / (15.0 * np.pi)) ** 2 * s_task**2))


class Family(Protocol):
    """A curve: parameters with a prior, and parts that depend on them linearly on a log scale.

    A reward curve has a single part and is read on the logit scale; the parts of cost (US dollars
    of each role) and of latency (seconds of each wait) are exponentiated and added.
    """

    @property
    def name(self) -> str:
        """Its name in the table."""
        ...

    @property
    def target(self) -> Target:
        """What it predicts."""
        ...

    def prior(self, models: Models) -> Prior:
        """Parameters and what is believed of them."""
        ...

    def components(self, theta: Floats, teams: TeamColumns, models: Models) -> Components:
        """The parts for these teams; a cost part is in tokens, prices come on top."""
        ...


def families(published: Mapping[str, PriorTable]) -> Mapping[str, Family]:
    """The built-in families by name; ``published`` is the prior for each target."""
    from teamalloc.models.families.critical_path import CriticalPath
    from teamalloc.models.families.role_tokens import RoleTokens
    from teamalloc.models.families.saturating import Saturating

    table: tuple[Family, ...] = (
        Saturating(published["reward"]),
        RoleTokens(published["cost"]),
        CriticalPath(published["latency"]),
    )
    return {family.name: family for family in table}
