"""Teams and their one-line form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamalloc.data.durations import format_duration, parse_duration_s
from teamalloc.data.team import MODES, STAGES, Seat, TeamConfig, parse_team, parse_who
from teamalloc.errors import BadInput

names = st.text(st.characters(codec="utf-8", exclude_characters=" \t\r\n=*@\0", exclude_categories=("Cs", "Zs", "Zl", "Zp", "Cc")), min_size=1, max_size=12)  # fmt: skip
efforts = st.none() | names
helpers = st.builds(Seat, st.sampled_from(STAGES), names, st.integers(1, 16), efforts)
teams = st.builds(
    TeamConfig,
    st.builds(lambda model, effort: Seat("lead", model, 1, effort), names, efforts),
    st.lists(helpers, max_size=5).map(tuple),
    st.sampled_from(MODES),
)


@given(teams)
def test_the_one_line_form_and_its_inverse(team: TeamConfig) -> None:
    assert parse_team(str(team)) == team


@given(teams)
def test_order_and_splitting_of_seats_do_not_matter(team: TeamConfig) -> None:
    again = TeamConfig(team.lead, tuple(reversed(team.helpers)), team.mode)
    assert again == team
    singles = [Seat(s.role, s.model, 1, s.effort) for s in team.helpers for _ in range(s.count)]
    assert TeamConfig(team.lead, tuple(singles), team.mode) == team
    assert sum(team.n_agents(stage) for stage in STAGES) == len(singles)


def test_words_for_a_team() -> None:
    team = parse_team("lead=sol@xhigh planner=luna*8 verifier=terra async")
    assert team.describe() == (
        "sol@xhigh leading 8 luna planners and 1 terra verifier, working on while they run"
    )
    assert parse_team("lead=sol async").mode == "blocking"


@pytest.mark.parametrize(
    "text",
    ["", "planner=luna", "lead=a lead=b", "lead=", "lead=a boss=b", "lead=a planner=b*0",
     "lead=a planner=b*x", "lead=a planner=b*-1", "lead=a@", "lead=a*2", "hello"],
)  # fmt: skip
def test_what_is_no_team_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_team(text)


def test_a_model_and_its_effort() -> None:
    assert parse_who("sol@high") == ("sol", "high")
    assert parse_who("sol") == ("sol", None)
    with pytest.raises(BadInput):
        parse_who("@high")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("30m", 1800),
        ("8h", 28800),
        ("1h30m", 5400),
        ("7d", 604800),
        (" 1H ", 3600),
        ("1.5h", 5400),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "banana", "30", "m", "-5m", "5m3h", "1e3s", "nan"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_duration_s(text)


@given(st.floats(1, 1e6))
def test_a_shown_duration_is_right_to_a_few_percent(seconds: float) -> None:
    assert parse_duration_s(format_duration(seconds)) == pytest.approx(seconds, rel=0.05)
