"""Teams as columns of numbers, for models that look at thousands of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from teamalloc.data.team import STAGES, TeamConfig

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class TeamColumns:
    """``n`` teams over a list of ``k`` models (``model@effort`` words)."""

    lead: Ints
    "(n,) index of the lead's model"
    count: Ints
    "(n, 3) agents in the planning, implementation, verification stage"
    share: Floats
    "(n, 3, k) part of the stage's agents that run each model; rows sum to 1, or 0 without agents"
    is_async: Bools
    "(n,) the lead works on while its helpers run"

    def __len__(self) -> int:
        return len(self.lead)

    @property
    def active(self) -> Floats:
        """(n, 3): 1 where the stage has agents, else 0."""
        return (self.count > 0).astype(np.float64)

    def take(self, rows: Ints | Bools | slice) -> TeamColumns:
        """The teams of these rows."""
        return TeamColumns(self.lead[rows], self.count[rows], self.share[rows], self.is_async[rows])


def encode(teams: Sequence[TeamConfig], models: Sequence[str]) -> TeamColumns:
    """Teams as columns; every model of a team must be in ``models``."""
    index = {who: i for i, who in enumerate(models)}
    n = len(teams)
    lead = np.array([index[team.lead.who] for team in teams], dtype=np.int64)
    agents = np.zeros((n, len(STAGES), len(models)))
    for row, team in enumerate(teams):
        for seat in team.helpers:
            agents[row, STAGES.index(seat.role), index[seat.who]] += seat.count
    count = agents.sum(2)
    share = agents / np.maximum(count, 1.0)[:, :, None]
    is_async = np.array([team.mode == "async" for team in teams], dtype=bool)
    return TeamColumns(lead.reshape(n), count.astype(np.int64), share, is_async)
