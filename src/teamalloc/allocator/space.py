"""Which teams are allowed: a grid of leads, helpers by stage, and modes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from teamalloc.data.team import MODES, STAGES, Seat, TeamConfig, parse_who
from teamalloc.errors import BadInput
from teamalloc.models.encode import TeamColumns

T = TypeVar("T")

PLANNER_COUNTS = (0, 1, 2, 3, 4, 6, 8, 12, 16)
OTHER_COUNTS = (0, 1, 2, 4)
MOST_PLANNERS = 16
MOST_OTHERS = 4
PLATEAU = "the published study found that more than 4 of them add cost and no reward"


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """A grid of teams with one tier a stage."""

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
        _check_cap("planners", max_planners, MOST_PLANNERS, "no run with more is on record")
        _check_cap("implementers", max_implementers, MOST_OTHERS, PLATEAU)
        _check_cap("verifiers", max_verifiers, MOST_OTHERS, PLATEAU)
        caps = (max_planners, max_implementers, max_verifiers)
        default = (PLANNER_COUNTS, OTHER_COUNTS, OTHER_COUNTS)
        counts = [
            tuple(range(cap + 1))
            if all_counts
            else tuple(sorted({*(n for n in usual if n <= cap), cap}))
            for cap, usual in zip(caps, default, strict=True)
        ]
        return cls(
            tuple(sorted(set(leads))),
            tuple(sorted(set(helpers))),
            (counts[0], counts[1], counts[2]),
        )

    def columns(self, models: Sequence[str]) -> TeamColumns:
        """Every team of the grid, over the given models."""
        at = {who: i for i, who in enumerate(models)}
        stages = [
            [(0, -1)] + [(n, at[who]) for n in counts if n for who in self.helpers]
            for counts in self.counts
        ]
        sizes = [len(self.leads), *(len(options) for options in stages), len(MODES)]
        grid = np.indices(sizes).reshape(len(sizes), -1)
        lead = np.array([at[who] for who in self.leads], dtype=np.int64)[grid[0]]
        count = np.empty((grid.shape[1], len(STAGES)), dtype=np.int64)
        share = np.zeros((grid.shape[1], len(STAGES), len(models)))
        for stage, options in enumerate(stages):
            table = np.array(options, dtype=np.int64)
            chosen = table[grid[1 + stage]]
            count[:, stage] = chosen[:, 0]
            rows = np.flatnonzero(chosen[:, 1] >= 0)
            share[rows, stage, chosen[rows, 1]] = 1.0
        is_async = grid[-1] == MODES.index("async")
        solo_async = is_async & (count.sum(1) == 0)
        return TeamColumns(lead, count, share, is_async).take(~solo_async)

    def __len__(self) -> int:
        options = [1 + sum(1 for n in counts if n) * len(self.helpers) for counts in self.counts]
        return len(self.leads) * (int(np.prod(options)) * len(MODES) - 1)


def _check_cap(what: str, cap: int, most: int, why: str) -> None:
    if not 0 <= cap <= most:
        raise BadInput(f"at most {most} {what}, not {cap}: {why}.", remedy=f"Use 0 to {most}.")


def decode(columns: TeamColumns, row: int, models: Sequence[str]) -> TeamConfig:
    """One row as a team."""
    lead_model, lead_effort = parse_who(models[int(columns.lead[row])])
    helpers = []
    for stage, role in enumerate(STAGES):
        n = int(columns.count[row, stage])
        for k in np.flatnonzero(columns.share[row, stage] > 0):
            model, effort = parse_who(models[int(k)])
            helpers.append(
                Seat(role, model, round(n * float(columns.share[row, stage, k])), effort)
            )
    mode = MODES[int(columns.is_async[row])]
    return TeamConfig(Seat("lead", lead_model, 1, lead_effort), tuple(helpers), mode)


def neighbours(team: TeamConfig, space: SearchSpace, order: Sequence[str]) -> dict[str, TeamConfig]:
    """Teams one step away, by what changes ("+1 planner"): the ways to spend a little more or less.

    Args:
        order: the models from weak to strong.
    """
    found: dict[str, TeamConfig] = {}
    for stage, role in enumerate(STAGES):
        seats = team.stage(role)
        if len(seats) > 1:
            continue
        if seats:
            _change_stage(found, team, seats[0], space.counts[stage], space.helpers, order)
            continue
        first = [n for n in space.counts[stage] if n]
        for who in space.helpers if first else ():
            model, effort = parse_who(who)
            seat = Seat(role, model, first[0], effort)
            found[f"+{first[0]} {who} {role}"] = TeamConfig(
                team.lead, (*team.helpers, seat), team.mode
            )
    for who in space.leads:
        if who != team.lead.who:
            model, effort = parse_who(who)
            found[f"{who} as lead"] = TeamConfig(
                Seat("lead", model, 1, effort), team.helpers, team.mode
            )
    if team.helpers:
        other = MODES[1 - MODES.index(team.mode)]
        found[f"{other} mode"] = TeamConfig(team.lead, team.helpers, other)
    return {change: other for change, other in found.items() if other != team}


def _change_stage(
    found: dict[str, TeamConfig],
    team: TeamConfig,
    seat: Seat,
    counts: Sequence[int],
    helpers: Sequence[str],
    order: Sequence[str],
) -> None:
    others = tuple(s for s in team.helpers if s != seat)
    ranked = [who for who in order if who in helpers]
    for n, sign in ((_after(counts, seat.count), 1), (_before(counts, seat.count), -1)):
        if n is None:
            continue
        step = f"{'+' if sign > 0 else '-'}{abs(n - seat.count)} {seat.role}"
        more = (Seat(seat.role, seat.model, n, seat.effort),) if n else ()
        found[step] = TeamConfig(team.lead, (*others, *more), team.mode)
    if seat.who in ranked:
        for who in (_after(ranked, seat.who), _before(ranked, seat.who)):
            if who is not None:
                model, effort = parse_who(who)
                swapped = Seat(seat.role, model, seat.count, effort)
                found[f"{who} as {seat.role}"] = TeamConfig(
                    team.lead, (*others, swapped), team.mode
                )


def _after(values: Sequence[T], value: T) -> T | None:
    at = values.index(value) + 1 if value in values else len(values)
    return values[at] if at < len(values) else None


def _before(values: Sequence[T], value: T) -> T | None:
    at = values.index(value) if value in values else 0
    return values[at - 1] if at > 0 else None
