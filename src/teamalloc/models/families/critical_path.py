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
from teamalloc.models.families import (
    Components,
    Models,
    Prior,
    PriorBuilder,
    Target,
    volume_level,
)
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
        """Level, one speed for each model, the lead's five terms, three for each stage."""
        build, published = PriorBuilder(), self.published
        level = volume_level(build, models.solo_s, published)
        for k, who in enumerate(models.who):
            solo = models.solo_s[k]
            build.add(
                f"model {who}",
                0.0 if np.isnan(solo) else float(solo) - level,
                published["model"][1],
            )
        for name in LEAD_TERMS:
            build.add(name, *published[name])
        for stage in STAGES:
            for name in (stage, f"{stage}_n", f"{stage}_async"):
                build.add(name, *published[name])
        return build.build()

    def components(self, theta: Floats, teams: TeamColumns, models: Models) -> Components:
        """Four parts: the lead's own seconds, the wait for each stage."""
        n, k = len(teams), models.n
        design = np.zeros((n, 1 + len(STAGES), len(theta)))
        design[:, :, 0] = 1.0
        design[np.arange(n), 0, 1 + teams.lead] = 1.0
        at = 1 + k
        design[:, 0, at : at + 3] = teams.active
        design[:, 0, at + 3] = np.log1p(teams.count).sum(1)
        design[:, 0, at + 4] = teams.is_async
        count = np.maximum(teams.count, 1.0)
        slowest = self.published["helper_spread"][0] * largest_score(teams.count)
        offset = np.zeros((n, 1 + len(STAGES)))
        for stage in range(len(STAGES)):
            first = at + len(LEAD_TERMS) + 3 * stage
            design[:, 1 + stage, 1 : 1 + k] = teams.share[:, stage]
            design[:, 1 + stage, first] = 1.0
            design[:, 1 + stage, first + 1] = np.log(count[:, stage])
            design[:, 1 + stage, first + 2] = teams.is_async
            offset[:, 1 + stage] = np.where(teams.count[:, stage] > 0, slowest[:, stage], -np.inf)
        return Components(offset + design @ theta, design)


def largest_score(count: Ints) -> Floats:
    """Expected largest of n standard normal numbers, by Blom's approximation; 0 for none or one."""
    most = max(int(count.max(initial=1)), 1)
    scores = [0.0] + [normal_quantile((n - 0.375) / (n + 0.25)) for n in range(1, most + 1)]
    return np.array(scores)[count]
