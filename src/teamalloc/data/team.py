"""A team: one lead and its helpers, written in one line.

    lead=gpt-5.6-sol@xhigh planner=gpt-5.6-luna*8 verifier=gpt-5.6-terra@low*2 blocking

``model@effort`` names one way of running a model: the effort is part of its identity. A helper
stage may hold two tiers, then it has two seats. ``str(team)`` is the team's identity and
``parse_team`` is its inverse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from teamalloc.errors import BadInput

Role = Literal["lead", "planner", "implementer", "verifier"]
Mode = Literal["blocking", "async"]

STAGES: tuple[Role, ...] = ("planner", "implementer", "verifier")
ROLES: tuple[Role, ...] = ("lead", *STAGES)
MODES: tuple[Mode, ...] = ("blocking", "async")

_RESERVED = set(" \t\r\n=*@\x00")


@dataclass(frozen=True, slots=True, order=True)
class Seat:
    """A group of like agents."""

    role: Role
    "stage the agents work in"
    model: str
    "as in the price book"
    count: int = 1
    "agents, at least 1"
    effort: str | None = None
    'reasoning effort; None = unknown, "default" = the provider\'s own'

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise BadInput(f"unknown role {self.role!r}.", remedy=f"Roles: {', '.join(ROLES)}.")
        if isinstance(self.count, bool) or not isinstance(self.count, int) or self.count < 1:
            raise BadInput(f"a seat needs at least one agent, not {self.count!r}.")
        for word in (self.model, self.effort if self.effort is not None else "x"):
            if not word or _RESERVED & set(word):
                raise BadInput(
                    f"{word!r} is no name for a model or an effort.",
                    remedy="Names are not empty and hold no blank and none of = * @.",
                )

    @property
    def who(self) -> str:
        """``model`` or ``model@effort``: the model's identity."""
        return self.model if self.effort is None else f"{self.model}@{self.effort}"

    def __str__(self) -> str:
        times = f"*{self.count}" if self.count > 1 else ""
        return f"{self.role}={self.who}{times}"


@dataclass(frozen=True, slots=True)
class TeamConfig:
    """One lead and its helpers; compares by value."""

    lead: Seat
    "the seat in charge, one agent"
    helpers: tuple[Seat, ...] = ()
    "sorted by stage; seats alike in all but count are merged"
    mode: Mode = "blocking"
    "blocking: the lead waits for its helpers; async: it works on (a solo lead is blocking)"

    def __post_init__(self) -> None:
        if self.lead.role != "lead" or self.lead.count != 1:
            raise BadInput("a team has exactly one lead.")
        if self.mode not in MODES:
            raise BadInput(f"unknown mode {self.mode!r}.", remedy=f"Modes: {', '.join(MODES)}.")
        counts: dict[tuple[Role, str, str | None], int] = {}
        for seat in self.helpers:
            if seat.role == "lead":
                raise BadInput("a team has exactly one lead.")
            key = (seat.role, seat.model, seat.effort)
            counts[key] = counts.get(key, 0) + seat.count
        merged = [Seat(role, model, n, effort) for (role, model, effort), n in counts.items()]
        merged.sort(key=lambda s: (STAGES.index(s.role), s.model, s.effort or ""))
        object.__setattr__(self, "helpers", tuple(merged))
        if not merged:
            object.__setattr__(self, "mode", "blocking")

    @property
    def seats(self) -> tuple[Seat, ...]:
        """The lead, then the helpers."""
        return (self.lead, *self.helpers)

    def stage(self, role: Role) -> tuple[Seat, ...]:
        """Helper seats of one stage."""
        return tuple(seat for seat in self.helpers if seat.role == role)

    def n_agents(self, role: Role) -> int:
        """Agents with this role."""
        return sum(seat.count for seat in self.seats if seat.role == role)

    @property
    def is_solo(self) -> bool:
        """A lead without helpers."""
        return not self.helpers

    def __str__(self) -> str:
        return " ".join([*map(str, self.seats), self.mode])

    def describe(self) -> str:
        """The team in words: ``gpt-5.6-sol@xhigh leading 8 gpt-5.6-luna planners``."""
        if self.is_solo:
            return f"{self.lead.who} alone"
        groups = [f"{s.count} {s.who} {s.role}{'s' if s.count > 1 else ''}" for s in self.helpers]
        last = groups.pop()
        listed = f"{', '.join(groups)} and {last}" if groups else last
        suffix = ", working on while they run" if self.mode == "async" else ""
        return f"{self.lead.who} leading {listed}{suffix}"


def parse_who(text: str) -> tuple[str, str | None]:
    """Split ``model[@effort]``; the inverse of ``Seat.who``."""
    model, at, effort = text.partition("@")
    if not model or (at and not effort):
        raise BadInput(
            f"{text!r} is not MODEL or MODEL@EFFORT.", remedy="Example: gpt-5.6-sol@xhigh."
        )
    return model, effort or None


def parse_team(text: str) -> TeamConfig:
    """Read the one-line form; ``parse_team(str(team)) == team``.

    Raises:
        BadInput: with the word that is wrong and the form expected.
    """
    seats: list[Seat] = []
    mode: Mode = "blocking"
    for word in text.split():
        if word in MODES:
            mode = "async" if word == "async" else "blocking"
            continue
        role, equals, rest = word.partition("=")
        who, star, times = rest.partition("*")
        if (
            not equals
            or role not in ROLES
            or (star and not times.isascii())
            or (star and not times.isdigit())
        ):
            raise BadInput(
                f"cannot read {word!r} in team {text!r}.",
                remedy="A team is written: lead=MODEL@EFFORT planner=MODEL*8 blocking.",
            )
        model, effort = parse_who(who)
        seats.append(Seat(_role(role), model, int(times) if star else 1, effort))
    leads = [seat for seat in seats if seat.role == "lead"]
    if len(leads) != 1:
        raise BadInput(
            f"team {text!r} has {len(leads)} leads.", remedy="Write exactly one lead=MODEL."
        )
    return TeamConfig(leads[0], tuple(s for s in seats if s.role != "lead"), mode)


def _role(word: str) -> Role:
    for role in ROLES:
        if role == word:
            return role
    raise BadInput(f"unknown role {word!r}.", remedy=f"Roles: {', '.join(ROLES)}.")
