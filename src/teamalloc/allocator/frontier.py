"""The frontier: teams that hold and earn more than any cheaper one."""

from __future__ import annotations

import numpy as np

from teamalloc.allocator.judge import Judged
from teamalloc.models.encode import Bools

MOST = 12


def frontier_cells(judged: Judged, among: Bools) -> list[int]:
    """Cells from the cheapest up; at most ``MOST``, spread evenly in reward."""
    cells = np.flatnonzero(among & judged.holds)
    if len(cells) == 0:
        return []
    reward = judged.reward.mean[cells]
    order = np.lexsort((cells, -reward, judged.cost.median[cells]))
    cells, reward = cells[order], reward[order]
    before = np.concatenate([[-np.inf], np.maximum.accumulate(reward)[:-1]])
    cells, reward = cells[reward > before], reward[reward > before]
    if len(cells) > MOST:
        at = np.searchsorted(reward, np.linspace(reward[0], reward[-1], MOST))
        cells = cells[np.unique(np.minimum(at, len(cells) - 1))]
    return [int(cell) for cell in cells]
