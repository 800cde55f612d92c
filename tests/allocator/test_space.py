"""The grid of teams, against counting by hand and a second enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teamalloc.allocator.candidates import MOST_CELLS, candidates
from teamalloc.allocator.space import SearchSpace, neighbours
from teamalloc.data.team import parse_team
from teamalloc.errors import BadInput
from teamalloc.models.encode import encode
from teamalloc.models.forecast import team_code

TIERS = ("luna", "sol", "terra")


def test_the_default_grid_of_three_tiers() -> None:
    # 3 leads x (1 + 8x3) planners x (1 + 3x3) implementers x (1 + 3x3) verifiers x 2 modes, solo in one.
    space = SearchSpace.of(TIERS, TIERS)
    assert len(space) == 3 * 25 * 10 * 10 * 2
    assert space.is_distinct().sum() == 14_997
    assert (space.is_solo() & space.is_distinct()).sum() == 3


def test_cells_columns_and_codes_are_the_same_teams() -> None:
    space = SearchSpace.of(
        TIERS, ("luna", "terra"), max_planners=3, max_implementers=1, max_verifiers=2
    )
    cells = np.flatnonzero(space.is_distinct())
    teams = [space.team(int(cell)) for cell in cells]
    assert len({str(team) for team in teams}) == len(cells)
    mine, theirs = encode(teams, TIERS), space.columns(TIERS, cells)
    for name in ("lead", "count", "share", "is_async"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
    assert len(set(team_code(theirs).tolist())) == len(cells)
    assert all(space.allows(team) for team in teams)


@given(st.integers(0, 3), st.integers(0, 2), st.integers(0, 2))
@settings(max_examples=20, deadline=None)
def test_the_grid_is_the_product_of_its_choices(
    planners: int, implementers: int, verifiers: int
) -> None:
    space = SearchSpace.of(
        ["sol"], ["luna", "sol"], max_planners=planners, max_implementers=implementers,
        max_verifiers=verifiers, all_counts=True,
    )  # fmt: skip
    stage = [
        [()] + [(n, w) for n in range(1, most + 1) for w in ("luna", "sol")]
        for most in (planners, implementers, verifiers)
    ]
    by_hand = {
        (choice, mode)
        for choice in product(*stage)
        for mode in ("blocking", "async")
        if any(choice) or mode == "blocking"
    }
    assert space.is_distinct().sum() == len(by_hand)


@pytest.mark.parametrize("cap", ["max_planners", "max_implementers", "max_verifiers"])
def test_too_many_are_refused_with_the_reason(cap: str) -> None:
    with pytest.raises(BadInput, match="at most"):
        SearchSpace.of(TIERS, TIERS, **{cap: 17})
    with pytest.raises(BadInput):
        SearchSpace.of(TIERS, TIERS, **{cap: -1})


def test_neighbours_are_one_step_away() -> None:
    space = SearchSpace.of(TIERS, TIERS)
    team = parse_team("lead=terra planner=luna*4 blocking")
    found = {
        words: str(other) for words, other in neighbours(team, space, ["luna", "terra", "sol"])
    }
    assert found["+2 luna planner"] == "lead=terra planner=luna*6 blocking"
    assert found["terra as planner"] == "lead=terra planner=terra*4 blocking"
    assert found["sol as lead"] == "lead=sol planner=luna*4 blocking"
    assert found["+1 luna verifier"] == "lead=terra planner=luna*4 verifier=luna blocking"
    assert found["async mode"] == "lead=terra planner=luna*4 async"
    assert str(team) not in found.values()


def test_candidates_are_what_was_run_and_what_was_asked_for() -> None:
    teams = [
        (parse_team("lead=sol@high planner=luna@low*2"), 5),
        (parse_team("lead=sol@low planner=luna"), 2),
    ]
    models = ["luna", "luna@low", "sol@high", "sol@low", "terra@medium"]
    found = candidates(models, teams, helpers=["terra@medium"])
    # terra was asked for as a helper: it does not lead. luna helps as it did most.
    assert found.leads == ("luna", "luna@low", "sol@high", "sol@low")
    assert found.helpers == ("luna@low", "sol@high", "terra@medium")


def test_a_huge_grid_loses_rare_helpers_and_says_so() -> None:
    models = [f"m{i}" for i in range(30)]
    teams = [(parse_team(f"lead={who} planner={models[0]}"), 1) for who in models]
    found = candidates(models, teams)
    assert len(SearchSpace.of(found.leads, found.helpers)) <= MOST_CELLS
    assert "m0" in found.helpers
    assert found.dropped
