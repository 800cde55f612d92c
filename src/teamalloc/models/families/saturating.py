"""Reward: the lead sets the level, each stage adds a gain that saturates with its size.

On the logit scale

    eta = level + lead + sum over stages of g(n) (a + b w + c l + d w l) + pairs + async

with w and l the tiers of the stage's models and of the lead. ``g`` is 1 at four helpers: planners
keep helping (log1p), implementers and verifiers stop at about four (1 - exp(-n/1.2)). Helper
tiers, pairs of stages and the widths follow the published figures (``evidence.toml``).
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
    flattening,
)

PAIRS = ((0, 1), (0, 2), (1, 2))
FORMS = ("", "_tier", "_lead", "_tier_lead")
SATURATION_AGENTS = 1.2
EFFORT_CARRIES = 0.5
"""Part of what an effort adds on the published tasks that is expected of it on others, where it is
not known at which effort the user's own runs were made; the other part is taken as doubt."""


def gain_shape(count: Ints) -> Floats:
    """(n, 3): part of the gain of four helpers that this many give, stage by stage."""
    n = count.astype(np.float64)
    planners = np.log1p(n[:, 0]) / np.log1p(4.0)
    others = -np.expm1(-n[:, 1:] / SATURATION_AGENTS) / -np.expm1(-4.0 / SATURATION_AGENTS)
    return np.column_stack([planners, others])


@dataclass(frozen=True, slots=True)
class Saturating:
    """The reward curve."""

    published: PriorTable
    "the prior of ``evidence.toml`` for reward"
    name: str = "saturating"
    target: Target = "reward"

    def prior(self, models: Models) -> Prior:
        """Level, one effect for each lead, four for each stage, pairs, async, and their scale."""
        build, published = PriorBuilder(), self.published
        level, level_width = published["level"]
        step, width = published["lead_step"]
        solo = models.solo_reward / flattening(published["task"][0])
        if not np.all(np.isnan(solo)):
            level = float(np.nanmax(solo))
        build.add("level", level, level_width, is_level=True)
        carried = EFFORT_CARRIES * models.effort_reward / flattening(published["task"][0])
        by_tier = step * (models.tier - 1.0) + carried
        mean = np.where(np.isnan(solo), by_tier, solo - level)
        sd = np.hypot(width, np.where(np.isnan(solo), carried, 0.0))
        for k, who in enumerate(models.who):
            build.add(f"lead {who}", float(mean[k]), float(sd[k]))
        for name in self._gain_names():
            build.add(name, *published[name])
        build.add("gain_scale", *published["gain_scale"])
        return build.build()

    def components(self, theta: Floats, teams: TeamColumns, models: Models) -> Components:
        """A single part: the logit of the mean reward."""
        gain = self._gain_design(teams, models)
        mean = np.array([self.published[name][0] for name in self._gain_names()])
        lead = np.zeros((len(teams), models.n))
        lead[np.arange(len(teams)), teams.lead] = 1.0
        design = np.column_stack([np.ones(len(teams)), lead, gain, gain @ mean])
        return Components((design @ theta)[:, None], design[:, None, :])

    def _gain_names(self) -> list[str]:
        names = [stage + form for stage in STAGES for form in FORMS]
        names += [f"{STAGES[a]}_{STAGES[b]}" for a, b in PAIRS]
        return [*names, "async"]

    def _gain_design(self, teams: TeamColumns, models: Models) -> Floats:
        shape = gain_shape(teams.count)
        lead_tier = models.tier[teams.lead]
        columns = []
        for stage in range(len(STAGES)):
            g, tier = shape[:, stage], teams.share[:, stage] @ models.tier
            columns += [g, g * tier, g * lead_tier, g * tier * lead_tier]
        columns += [shape[:, a] * shape[:, b] for a, b in PAIRS]
        columns.append(teams.is_async * (teams.count.sum(1) > 0))
        return np.column_stack(columns)
