"""What a fit leaves behind: numbers only, stored as JSON."""

from __future__ import annotations

from dataclasses import dataclass, field

from teamalloc.models.encode import Floats
from teamalloc.models.families import Target


@dataclass(frozen=True, slots=True)
class Support:
    """What a curve was fitted from; beyond it a prediction extrapolates."""

    n_runs: int
    "runs with this target (a mean counts for the runs behind it)"
    n_rows: int
    "rows with this target"
    n_tasks: int
    "distinct tasks"
    n_teams: int
    "distinct teams"
    n_assigned: int
    "runs whose team was set by an experiment or the harness"
    leads: tuple[str, ...]
    "models seen in the lead"
    max_count: tuple[int, int, int]
    "most agents seen in each stage"
    stage_models: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    "models seen in each stage"


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """The posterior of one target."""

    family: str
    "name in the table of families"
    target: Target
    names: tuple[str, ...]
    "(p,) parameters"
    theta: Floats
    "(p,) their mean"
    team_effect: Floats
    "(t,) what the teams in ``teams`` have of their own"
    cov: Floats
    "(p + t, p + t)"
    teams: tuple[str, ...]
    "(t,) teams with an effect of their own, in one-line form"
    s_task: float
    "spread of tasks, link scale"
    s_team: float
    "spread of what a team has of its own, link scale"
    noise: Floats
    "spread of one run, link scale, by noise group of the family"
    noise_is_by_role: bool
    "cost: a run's spread is that of its roles' tokens; otherwise that of its total"
    tau: float
    "learned width of the prior, 1 = as published"
    upper: float
    "conformal factor on the distance from the median upward (1 = normal)"
    lower: float
    "the same downward"
    unit_runs: float
    "1, or the runs behind each row where only means are known: then the spread is of such means"
    support: Support


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """One target for ``n`` teams, log scale for dollars and seconds, [0, 1] for reward."""

    target: Target
    mean: Floats
    "(n,) mean reward; median of log US dollars or log seconds"
    epistemic_sd: Floats
    "(n,) sd of the average task: what more runs would teach"
    run_sd: Floats
    "(n,) sd of a single run around it: what more runs would not change"
    extrapolated: Floats = field(repr=False)
    "(n,) 1 where the team lies beyond what was seen"
