"""Which teams are allowed: a grid of leads, helpers by stage, and modes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from teamalloc.data.team import MODES, STAGES, Seat, TeamConfig, parse_who
from teamalloc.errors import BadInput
from teamalloc.models.encode import Bools, Ints, TeamColumns

T = TypeVar("T")

PLANNER_COUNTS = (0, 1, 2, 3, 4, 6, 8, 12, 16)
OTHER_COUNTS = (0, 1, 2, 4)
MOST_PLANNERS = 16
MOST_OTHERS = 4
PLATEAU = "the published study found that more than 4 of them add cost and no reward"
NO_RECORD = "no run with more is on record"


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """A grid of teams with one tier a stage; a cell is the number of a team in it."""

    leads: tuple[str, ...]
    "``model@effort`` words that may lead"
    helpers: tuple[str, ...]
    "``model@effort`` words that may help"
    counts: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    "allowed numbers of planners, implementers, verifiers; each holds 0"

    @classmethod
    def of(
        cls,
        leads: Sequence[str],
        helpers: Sequence[str],
        *,
        max_planners: int = MOST_PLANNERS,
        max_implementers: int = MOST_OTHERS,
        max_verifiers: int = MOST_OTHERS,
        all_counts: bool = False,
    ) -> SearchSpace:
        """The default grid up to these caps.

        Raises:
            BadInput: a cap is out of range, with the reason.
        """
        _check_cap("planners", max_planners, MOST_PLANNERS, NO_RECORD)
        _check_cap("implementers", max_implementers, MOST_OTHERS, PLATEAU)
        _check_cap("verifiers", max_verifiers, MOST_OTHERS, PLATEAU)
        caps = (max_planners, max_implementers, max_verifiers)
        usual = (PLANNER_COUNTS, OTHER_COUNTS, OTHER_COUNTS)
        counts = [_up_to(cap, all_counts, grid) for cap, grid in zip(caps, usual, strict=True)]
        return cls(
            tuple(sorted(set(leads))),
            tuple(sorted(set(helpers))),
            (counts[0], counts[1], counts[2]),
        )

    def __len__(self) -> int:
        return int(np.prod(self._shape()))

    def _options(self, stage: int) -> list[tuple[int, int]]:
        """(count, index of the helper or -1) choices of a stage."""
        some = [n for n in self.counts[stage] if n]
        return [(0, -1), *((n, k) for n in some for k in range(len(self.helpers)))]

    def _shape(self) -> tuple[int, ...]:
        stages = [len(self._options(stage)) for stage in range(len(STAGES))]
        return (len(self.leads), *stages, len(MODES))

    def _axes(self, cells: Ints) -> list[Ints]:
        return [np.asarray(axis, dtype=np.int64) for axis in np.unravel_index(cells, self._shape())]

    def is_solo(self) -> Bools:
        """(cells,) no helpers."""
        solo = np.zeros(self._shape(), dtype=bool)
        solo[:, 0, 0, 0, :] = True
        return solo.reshape(-1)

    def is_distinct(self) -> Bools:
        """(cells,) False where the cell is another spelling of a team: a solo lead has one mode."""
        distinct = np.ones(self._shape(), dtype=bool)
        distinct[:, 0, 0, 0, MODES.index("async")] = False
        return distinct.reshape(-1)

    def lead(self) -> Ints:
        """(cells,) index of the lead."""
        return self._axes(np.arange(len(self)))[0]

    def kind(self) -> Ints:
        """(cells,) equal where teams differ in numbers or mode only, not in who works where."""
        axes = self._axes(np.arange(len(self)))
        kind = axes[0]
        for stage in range(len(STAGES)):
            helper = np.array([k + 1 for _, k in self._options(stage)])
            kind = kind * (len(self.helpers) + 1) + helper[axes[1 + stage]]
        return np.asarray(kind, dtype=np.int64)

    def columns(self, models: Sequence[str], cells: Ints) -> TeamColumns:
        """These cells as columns over the given models."""
        at = {who: i for i, who in enumerate(models)}
        helper = np.array([at[who] for who in self.helpers], dtype=np.int64)
        axes = self._axes(cells)
        lead = np.array([at[who] for who in self.leads], dtype=np.int64)[axes[0]]
        count = np.zeros((len(cells), len(STAGES)), dtype=np.int64)
        share = np.zeros((len(cells), len(STAGES), len(models)))
        for stage in range(len(STAGES)):
            chosen = np.array(self._options(stage), dtype=np.int64)[axes[1 + stage]]
            count[:, stage] = chosen[:, 0]
            rows = np.flatnonzero(chosen[:, 1] >= 0)
            share[rows, stage, helper[chosen[rows, 1]]] = 1.0
        is_async = (axes[-1] == MODES.index("async")) & (count.sum(1) > 0)
        return TeamColumns(lead, count, share, is_async)

    def team(self, cell: int) -> TeamConfig:
        """One cell as a team."""
        axes = [int(axis[0]) for axis in self._axes(np.array([cell]))]
        lead_model, lead_effort = parse_who(self.leads[axes[0]])
        helpers = []
        for stage, role in enumerate(STAGES):
            n, k = self._options(stage)[axes[1 + stage]]
            if n:
                model, effort = parse_who(self.helpers[k])
                helpers.append(Seat(role, model, n, effort))
        return TeamConfig(Seat("lead", lead_model, 1, lead_effort), tuple(helpers), MODES[axes[-1]])

    def allows(self, team: TeamConfig) -> bool:
        """Whether a team (perhaps between the grid's counts) keeps the caps and the candidates."""
        if team.lead.who not in self.leads or any(s.who not in self.helpers for s in team.helpers):
            return False
        return all(
            team.n_agents(role) <= max(n) for role, n in zip(STAGES, self.counts, strict=True)
        )


def _up_to(cap: int, all_counts: bool, usual: Sequence[int]) -> tuple[int, ...]:
    if all_counts:
        return tuple(range(cap + 1))
    return tuple(sorted({*(n for n in usual if n <= cap), cap}))


def _check_cap(what: str, cap: int, most: int, why: str) -> None:
    if not 0 <= cap <= most:
        raise BadInput(f"at most {most} {what}, not {cap}: {why}.", remedy=f"Use 0 to {most}.")


def neighbours(
    team: TeamConfig, space: SearchSpace, order: Sequence[str]
) -> list[tuple[str, TeamConfig]]:
    """Teams one step away, each with the step in words: the ways to spend a little more.

    Args:
        order: all models from weak to strong.
    """
    steps: list[tuple[str, TeamConfig]] = []
    for role, counts in zip(STAGES, space.counts, strict=True):
        seats = team.stage(role)
        if len(seats) == 1:
            steps += _stage_steps(team, seats[0], counts, space, order)
        elif not seats and any(counts):
            first = next(n for n in counts if n)
            for who in space.helpers:
                steps.append((f"+{first} {who} {role}", _with_helper(team, role, who, first)))
    for who in space.leads:
        if who != team.lead.who:
            model, effort = parse_who(who)
            lead = Seat("lead", model, 1, effort)
            steps.append((f"{who} as lead", TeamConfig(lead, team.helpers, team.mode)))
    if team.helpers:
        other = MODES[1 - MODES.index(team.mode)]
        steps.append((f"{other} mode", TeamConfig(team.lead, team.helpers, other)))
    return steps


def _stage_steps(
    team: TeamConfig, seat: Seat, counts: Sequence[int], space: SearchSpace, order: Sequence[str]
) -> list[tuple[str, TeamConfig]]:
    """More of the same helpers, or the next stronger ones in their place."""
    steps = []
    without = TeamConfig(team.lead, tuple(s for s in team.helpers if s != seat), team.mode)
    more = _after([n for n in counts if n], seat.count)
    if more is not None:
        grown = _with_helper(without, seat.role, seat.who, more)
        steps.append((f"+{more - seat.count} {seat.who} {seat.role}", grown))
    stronger = _after([who for who in order if who in space.helpers], seat.who)
    if stronger is not None:
        raised = _with_helper(without, seat.role, stronger, seat.count)
        steps.append((f"{stronger} as {seat.role}", raised))
    return [(words, TeamConfig(t.lead, t.helpers, team.mode)) for words, t in steps]


def _with_helper(team: TeamConfig, role: str, who: str, count: int) -> TeamConfig:
    model, effort = parse_who(who)
    stage = next(stage for stage in STAGES if stage == role)
    return TeamConfig(team.lead, (*team.helpers, Seat(stage, model, count, effort)), team.mode)


def _after(values: Sequence[T], value: T) -> T | None:
    """The value that follows, None behind the last."""
    at = values.index(value) + 1 if value in values else len(values)
    return values[at] if at < len(values) else None
