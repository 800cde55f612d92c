"""Latency: the lead's own time plus the wait for the slowest helper of each stage.

    seconds = own(lead) + sum over stages of wait(n)
    log wait(n) = level + model + stage + b log n + log E[slowest of n] + async

The expected slowest of ``n`` log-normal times with spread s is taken as exp(s z_n), z_n the normal
score of the largest of n (Blom 1958). In async mode the lead works on while its helpers run, so a
wait counts only in part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from teamalloc.data.evidence import PriorTable
from teamalloc.data.team import STAGES
from teamalloc.models.encode import Floats, Ints, TeamColumns
from teamalloc.models.families import Components, Models, Prior, Target
from teamalloc.models.families.parts import parts_of, parts_prior
from teamalloc.models.normal import normal_quantile

LEAD_TERMS = (*(f"lead_{s}" for s in STAGES), "lead_n", "lead_async")


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The latency curve, in seconds of the lead and of each wait."""

    published: PriorTable
    "the prior of ``evidence.toml`` for latency"
    name: str = "critical_path"
    target: Target = "latency"

    def prior(self, models: Models) -> Prior:
        """Speeds of models around their published seconds."""
        widths = np.full(models.n, self.published["model"][1])
        return parts_prior(models, models.solo_s, widths, LEAD_TERMS, self.published)

    def components(self, theta: Floats, teams: TeamColumns, models: Models) -> Components:
        """Four parts: the lead's own seconds, the wait for each stage."""
        reports = np.log1p(teams.count).sum(1)
        lead = np.column_stack([teams.active, reports, teams.is_async])
        slowest = self.published["helper_spread"][0] * largest_score(teams.count)
        return parts_of(theta, teams, models, lead, slowest)


def largest_score(count: Ints) -> Floats:
    """Expected largest of n standard normal numbers, by Blom's approximation; 0 for none or one."""
    most = max(int(count.max(initial=1)), 1)
    scores = [0.0] + [normal_quantile((n - 0.375) / (n + 0.25)) for n in range(1, most + 1)]
    return np.array(scores)[count]
