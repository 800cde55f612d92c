"""Cost: tokens of each role on a log scale, priced and added.

    log tokens(lead)  = level + model + what it hands over + reading n reports + async
    log tokens(stage) = level + model + stage + (1 + b) log n + async

Tokens carry over between prices and tiers better than dollars do, and a new price needs no new fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from teamalloc.data.evidence import PriorTable
from teamalloc.data.team import STAGES
from teamalloc.models.encode import Floats, TeamColumns
from teamalloc.models.families import Components, Models, Prior, Target
from teamalloc.models.families.parts import parts_of, parts_prior

LEAD_TERMS = (*(f"lead_{s}" for s in STAGES), *(f"lead_n_{s}" for s in STAGES), "lead_async")


@dataclass(frozen=True, slots=True)
class RoleTokens:
    """The cost curve, in tokens of the lead and of each stage."""

    published: PriorTable
    "the prior of ``evidence.toml`` for cost"
    name: str = "role_tokens"
    target: Target = "cost"

    def prior(self, models: Models) -> Prior:
        """The volume of a model without a price stands for its price as well: it is kept wide."""
        known, implied, unknown = (
            self.published[name][1] for name in ("model", "model_implied", "model_unpriced")
        )
        widths = np.where(models.priced, known, np.where(models.implied, implied, unknown))
        return parts_prior(models, models.solo_tokens, widths, LEAD_TERMS, self.published)

    def components(self, theta: Floats, teams: TeamColumns, models: Models) -> Components:
        """Four parts: tokens of the lead, of planners, implementers, verifiers."""
        lead = np.column_stack([teams.active, np.log1p(teams.count), teams.is_async])
        return parts_of(theta, teams, models, lead, np.log(np.maximum(teams.count, 1.0)))
