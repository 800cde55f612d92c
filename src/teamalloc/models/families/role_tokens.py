"""Cost: tokens of each role on a log scale, priced and added.

    log tokens(lead)  = level + model + what it hands over + reading n reports + async
    log tokens(stage) = level + model + stage + (1 + b) log n + async

Tokens carry over between prices and tiers better than dollars do, and a new price needs no new fit.
The level is that of the strongest lead alone; a stage's volume is relative to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from teamalloc.data.evidence import PriorTable
from teamalloc.data.team import STAGES
from teamalloc.models.encode import Floats, TeamColumns
from teamalloc.models.families import (
    Components,
    Models,
    Prior,
    PriorBuilder,
    Target,
    volume_level,
)

LEAD_TERMS = (
    tuple(f"lead_{s}" for s in STAGES) + tuple(f"lead_n_{s}" for s in STAGES) + ("lead_async",)
)


@dataclass(frozen=True, slots=True)
class RoleTokens:
    """The cost curve, in tokens of the lead and of each stage."""

    published: PriorTable
    "the prior of ``evidence.toml`` for cost"
    name: str = "role_tokens"
    target: Target = "cost"

    def prior(self, models: Models) -> Prior:
        """Level, one volume for each model, the lead's seven terms, three for each stage."""
        build, published = PriorBuilder(), self.published
        level = volume_level(build, models.solo_tokens, published)
        for k, who in enumerate(models.who):
            solo = models.solo_tokens[k]
            build.add(
                f"model {who}",
                0.0 if np.isnan(solo) else float(solo) - level,
                self._width(models, k),
            )
        for name in LEAD_TERMS:
            build.add(name, *published[name])
        for stage in STAGES:
            for name in (stage, f"{stage}_n", f"{stage}_async"):
                build.add(name, *published[name])
        return build.build()

    def _width(self, models: Models, k: int) -> float:
        return self.published["model" if models.priced[k] else "model_unpriced"][1]

    def components(self, theta: Floats, teams: TeamColumns, models: Models) -> Components:
        """Four parts: tokens of the lead, of planners, implementers, verifiers."""
        n, k = len(teams), models.n
        design = np.zeros((n, 1 + len(STAGES), len(theta)))
        design[:, :, 0] = 1.0
        design[np.arange(n), 0, 1 + teams.lead] = 1.0
        at = 1 + k
        design[:, 0, at : at + 3] = teams.active
        design[:, 0, at + 3 : at + 6] = np.log1p(teams.count)
        design[:, 0, at + 6] = teams.is_async
        log_n = np.log(np.maximum(teams.count, 1.0))
        offset = np.zeros((n, 1 + len(STAGES)))
        for stage in range(len(STAGES)):
            first = at + len(LEAD_TERMS) + 3 * stage
            design[:, 1 + stage, 1 : 1 + k] = teams.share[:, stage]
            design[:, 1 + stage, first] = 1.0
            design[:, 1 + stage, first + 1] = log_n[:, stage]
            design[:, 1 + stage, first + 2] = teams.is_async
            offset[:, 1 + stage] = np.where(teams.count[:, stage] > 0, log_n[:, stage], -np.inf)
        return Components(offset + design @ theta, design)
