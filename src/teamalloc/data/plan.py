"""A plan: the record in which planning and execution meet.

A plan written by hand runs as well as one that was recommended; the forecast is then absent.
"""

from __future__ import annotations

from dataclasses import dataclass

from teamalloc.data.run import Limits
from teamalloc.data.team import TeamConfig


@dataclass(frozen=True, slots=True)
class SeatForecast:
    """What one agent of a seat is expected to use, as quantiles."""

    seat: str
    "the seat in one-line form"
    levels: tuple[float, ...]
    "probabilities of the quantiles"
    tokens: tuple[float, ...] | None
    "tokens of one agent at each level; None = not known"
    cost_usd: tuple[float, ...] | None
    "US dollars of one agent at each level; None = not known"
    active_s: tuple[float, ...] | None
    "seconds of one agent at each level; None = not known"


@dataclass(frozen=True, slots=True)
class Plan:
    """A team to run, within which limits, and what it is expected to use."""

    team: TeamConfig
    "who runs"
    limits: Limits
    "budget in US dollars and wall time in seconds of one run"
    forecasts: tuple[SeatForecast, ...] = ()
    "one for each seat; empty for a plan written by hand"
    based_on: str = "manual"
    'digest of the curves it came from, or "manual"'
    version: int = 1
    "of this record"
