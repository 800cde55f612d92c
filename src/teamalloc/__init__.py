"""Which team of coding agents to run for a budget and a deadline, from your own logs.

The public names; each is imported when it is first used, so that importing teamalloc costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from teamalloc.allocator.answer import Answer, Question, answer
    from teamalloc.allocator.problem import Problem
    from teamalloc.allocator.recommend import Recommendation, recommend
    from teamalloc.allocator.space import SearchSpace
    from teamalloc.allocator.to_plan import to_plan
    from teamalloc.data.ingest import Ingested, ingest
    from teamalloc.data.plan import Plan
    from teamalloc.data.prices import PriceBook
    from teamalloc.data.run import AgentUsage, Limits, Run, Tokens, UsageSlice
    from teamalloc.data.store import RunStore
    from teamalloc.data.team import Seat, TeamConfig, parse_team
    from teamalloc.errors import TeamallocError
    from teamalloc.models.check import check_fit
    from teamalloc.models.fit import fit_forecaster
    from teamalloc.models.forecast import Forecaster

__all__ = [
    "AgentUsage",
    "Answer",
    "Forecaster",
    "Ingested",
    "Limits",
    "Plan",
    "PriceBook",
    "Problem",
    "Question",
    "Recommendation",
    "Run",
    "RunStore",
    "SearchSpace",
    "Seat",
    "TeamConfig",
    "TeamallocError",
    "Tokens",
    "UsageSlice",
    "answer",
    "check_fit",
    "fit_forecaster",
    "ingest",
    "parse_team",
    "recommend",
    "to_plan",
]

_HOME = {
    "teamalloc.allocator.answer": ("Answer", "Question", "answer"),
    "teamalloc.allocator.problem": ("Problem",),
    "teamalloc.allocator.recommend": ("Recommendation", "recommend"),
    "teamalloc.allocator.space": ("SearchSpace",),
    "teamalloc.allocator.to_plan": ("to_plan",),
    "teamalloc.data.ingest": ("Ingested", "ingest"),
    "teamalloc.data.plan": ("Plan",),
    "teamalloc.data.prices": ("PriceBook",),
    "teamalloc.data.run": ("AgentUsage", "Limits", "Run", "Tokens", "UsageSlice"),
    "teamalloc.data.store": ("RunStore",),
    "teamalloc.data.team": ("Seat", "TeamConfig", "parse_team"),
    "teamalloc.errors": ("TeamallocError",),
    "teamalloc.models.check": ("check_fit",),
    "teamalloc.models.fit": ("fit_forecaster",),
    "teamalloc.models.forecast": ("Forecaster",),
}


def __getattr__(name: str) -> object:
    for module, names in _HOME.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'teamalloc' has no attribute {name!r}")
