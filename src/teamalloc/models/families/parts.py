"""What cost and latency share: a part of the lead's own, and one for each stage.

    log part(lead)  = level + model + the lead's terms
    log part(stage) = level + model + stage + b log n + async

The level is that of one model alone; what a stage adds is relative to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from teamalloc.data.evidence import PriorTable
from teamalloc.data.team import STAGES
from teamalloc.models.encode import Floats, TeamColumns
from teamalloc.models.families import Components, Models, Prior, PriorBuilder

STAGE_TERMS = ("", "_n", "_async")


def parts_prior(
    models: Models,
    solo: Floats,
    widths: Floats,
    lead_terms: Sequence[str],
    published: PriorTable,
) -> Prior:
    """Level, one term for each model, the lead's terms, three for each stage.

    Args:
        solo: (k,) published log volume of each model alone; nan = none.
        widths: (k,) how far a model may lie from it.
        lead_terms: names of the lead's terms in the prior table.
    """
    build = PriorBuilder()
    known = solo[~np.isnan(solo)]
    mean, sd = published["level" if len(known) else "level_unknown"]
    level = float(known.mean()) if len(known) else mean
    build.add("level", level, sd, is_level=True)
    for who, volume, width in zip(models.who, solo, widths, strict=True):
        build.add(f"model {who}", 0.0 if np.isnan(volume) else float(volume) - level, float(width))
    for name in lead_terms:
        build.add(name, *published[name])
    for stage in STAGES:
        for term in STAGE_TERMS:
            build.add(stage + term, *published[stage + term])
    return build.build()


def parts_of(
    theta: Floats, teams: TeamColumns, models: Models, lead_columns: Floats, offset: Floats
) -> Components:
    """The parts at theta.

    Args:
        lead_columns: (n, terms) what multiplies the lead's terms.
        offset: (n, 3) known log factor of each stage.
    """
    n, k, n_terms = len(teams), models.n, lead_columns.shape[1]
    design = np.zeros((n, 1 + len(STAGES), len(theta)))
    design[:, :, 0] = 1.0
    design[np.arange(n), 0, 1 + teams.lead] = 1.0
    design[:, 0, 1 + k : 1 + k + n_terms] = lead_columns
    log_n = np.log(np.maximum(teams.count, 1.0))
    absent = np.where(teams.count > 0, offset, -np.inf)
    for stage in range(len(STAGES)):
        first = 1 + k + n_terms + len(STAGE_TERMS) * stage
        design[:, 1 + stage, 1 : 1 + k] = teams.share[:, stage]
        design[:, 1 + stage, first] = 1.0
        design[:, 1 + stage, first + 1] = log_n[:, stage]
        design[:, 1 + stage, first + 2] = teams.is_async
    return Components(np.column_stack([np.zeros(n), absent]) + design @ theta, design)
