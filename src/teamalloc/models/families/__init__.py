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


class PriorBuilder:
    """Collects parameters in order."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, float, float]] = []

    def add(self, name: str, mean: float, sd: float) -> None:
        """One parameter."""
        self._rows.append((name, mean, sd))

    def build(self) -> Prior:
        """All parameters as arrays."""
        names, mean, sd = zip(*self._rows, strict=True)
        return Prior(names, np.array(mean, dtype=float), np.array(sd, dtype=float))


@dataclass(frozen=True, slots=True, eq=False)
class Models:
    """The models (``model@effort``) a fit speaks of, ``k`` of them, and what is known beforehand."""

    who: tuple[str, ...]
    "(k,) sorted"
    tier: Floats
    "(k,) rank by strength, spread over [-1, 1]; models alike in all but effort share it"
    solo_reward: Floats
    "(k,) published reward of the model alone as a logit, relative to the others; nan = none"
    solo_tokens: Floats
    "(k,) published log tokens of the model alone; nan = none"
    solo_s: Floats
    "(k,) published log seconds of the model alone; nan = none"
    priced: Bools
    "(k,) a price is known; otherwise the fit must find what a token costs from the totals"

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
