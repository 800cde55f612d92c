"""A run: one attempt at one task by one team, with every token counted once.

Unknown is None, never 0. Money is ``Decimal`` dollars, time is seconds, instants carry a zone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from teamalloc.data.team import TeamConfig
from teamalloc.errors import BadInput

AgentRole = Literal["lead", "planner", "implementer", "verifier", "unknown"]
Status = Literal["done", "failed", "over_budget", "timed_out", "cancelled", "unknown"]
RewardSource = Literal["log", "file", "user", "grader"]
Flag = Literal["output_lower_bound", "usage_missing", "price_missing", "damaged_lines"]

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens by the rate they are billed at; the kinds never overlap, so they add up."""

    fresh_input: int = 0
    "input at the full rate: neither read from nor written to a cache"
    cache_read: int = 0
    "input read from a prompt cache"
    cache_write_5m: int = 0
    "input written to a cache that lives five minutes (or has no stated life)"
    cache_write_1h: int = 0
    "input written to a cache that lives one hour"
    output: int = 0
    "everything generated, reasoning included"

    def __post_init__(self) -> None:
        for field in fields(self):
            n = getattr(self, field.name)
            if isinstance(n, bool) or not isinstance(n, int) or n < 0:
                raise BadInput(f"{field.name} must be a whole number of tokens, not {n!r}.")

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.fresh_input + other.fresh_input,
            self.cache_read + other.cache_read,
            self.cache_write_5m + other.cache_write_5m,
            self.cache_write_1h + other.cache_write_1h,
            self.output + other.output,
        )

    @property
    def prompt(self) -> int:
        """Tokens in the prompt, cached or not."""
        return self.fresh_input + self.cache_read + self.cache_write_5m + self.cache_write_1h

    @property
    def total(self) -> int:
        """All tokens billed."""
        return self.prompt + self.output


@dataclass(frozen=True, slots=True)
class UsageSlice:
    """Requests of one agent that are priced alike."""

    model: str | None
    "as served, normalised; None = not logged"
    tokens: Tokens | None
    "sum over the requests; None = the log holds no usage"
    n_calls: int = 1
    "model responses"
    effort: str | None = None
    "reasoning effort as logged; None = unknown"
    context_band: int = 0
    "prompt size at which the price tier of these requests starts (tokens); 0 = the base tier"
    speed: str | None = None
    "speed as served (Anthropic: standard, fast)"
    service_tier: str | None = None
    "service tier as served (standard, priority, flex, batch)"
    day: date | None = None
    "UTC day of the requests"
    turn: int = 0
    "which human prompt they belong to, from 0"
    cost_reported_usd: Decimal | None = None
    "what the log says they cost; None = it does not say"
    cost_list_usd: Decimal | None = None
    "tokens x list price of the day; None = price or usage unknown"

    @property
    def cost_usd(self) -> Decimal | None:
        """List price where it is known, else what the log reports."""
        return self.cost_reported_usd if self.cost_list_usd is None else self.cost_list_usd


@dataclass(frozen=True, slots=True)
class AgentUsage:
    """What one agent used."""

    agent_id: str
    'unique within the run; the lead\'s is "lead"'
    role: AgentRole
    "stage it worked in, inferred from what it did; unknown = billed, but no seat"
    parent_id: str | None = None
    "agent that started it; None for the lead"
    agent_label: str | None = None
    'the log\'s own word for it ("Explore", "worker")'
    asked_model: str | None = None
    "model that was asked for; None = not logged"
    usage: tuple[UsageSlice, ...] = ()
    "what it used; empty = it made no request"
    intervals: tuple[Interval, ...] = ()
    "when it worked: (start_s, end_s) after the start of the run"
    waited_s: float | None = None
    "time lost to rate limits and retries; None = not logged"
    flags: tuple[Flag, ...] = ()
    "what is uncertain about these numbers"

    @property
    def tokens(self) -> Tokens | None:
        """Sum over the slices; None if the usage of any is missing."""
        total = Tokens()
        for piece in self.usage:
            if piece.tokens is None:
                return None
            total += piece.tokens
        return total

    @property
    def cost_usd(self) -> Decimal | None:
        """Sum over the slices; None if the cost of any is unknown."""
        return _sum_known(piece.cost_usd for piece in self.usage)

    @property
    def n_calls(self) -> int:
        """Model responses."""
        return sum(piece.n_calls for piece in self.usage)

    @property
    def served_models(self) -> tuple[str, ...]:
        """Models that answered, most calls first."""
        calls: dict[str, int] = {}
        for piece in self.usage:
            if piece.model is not None:
                calls[piece.model] = calls.get(piece.model, 0) + piece.n_calls
        return tuple(sorted(calls, key=lambda m: (-calls[m], m)))


@dataclass(frozen=True, slots=True)
class Source:
    """Where a run was read from; never a path."""

    format: str
    "name of the reader"
    reader_version: int
    "its version: a mended reader reads the same log again"
    session_id: str
    "the log's own identifier of the session"
    digest: str
    "SHA-256 of what was read (hex), to see a changed log"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits in force; None = none."""

    budget_usd: Decimal | None = None
    "US dollars"
    wall_s: float | None = None
    "seconds"


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt at one task by one team (or the mean of ``n_runs`` such attempts)."""

    run_id: str
    "stable over re-ingests"
    team: TeamConfig | None
    "None = no model was logged: the run counts in spend only"
    source: Source
    task_id: str | None = None
    "None = a task of its own"
    agents: tuple[AgentUsage, ...] = ()
    "the lead first; empty = the log has totals only"
    total_reported_usd: Decimal | None = None
    "cost of the whole run as the log states it; None = it does not"
    reward: float | None = None
    "[0, 1]; None = not graded"
    reward_source: RewardSource | None = None
    "where the reward came from"
    active_s: float | None = None
    "time at work: parallel parts count once, waiting for a person not at all; None = unknown"
    span_s: float | None = None
    "first to last row"
    status: Status = "unknown"
    "how it ended"
    limits: Limits = Limits()
    "limits in force while it ran"
    assigned: bool = False
    "True: the team was set by an experiment or the harness; False: chosen on the fly"
    multi_turn: bool = False
    "several human prompts: counts in spend, stays out of reward and latency fits until confirmed"
    turn_starts_s: tuple[float, ...] = ()
    "start of each turn after the start of the run"
    n_runs: int = 1
    "1, or the number of runs this row is the mean of"
    started_at: datetime | None = None
    "with zone"
    client: str | None = None
    "agent program"
    client_version: str | None = None
    "its version"
    tags: tuple[tuple[str, str], ...] = ()
    "sorted (key, value) pairs"
    plan_digest: str | None = None
    "plan it executed, if any"

    def __post_init__(self) -> None:
        if self.reward is not None and not 0.0 <= self.reward <= 1.0:
            raise BadInput(f"a reward lies in [0, 1], not {self.reward!r}.")
        for name in ("active_s", "span_s"):
            seconds = getattr(self, name)
            if seconds is not None and not (math.isfinite(seconds) and seconds >= 0):
                raise BadInput(f"{name} must be finite and not negative, not {seconds!r}.")
        cost = self.total_reported_usd
        if cost is not None and not (cost.is_finite() and cost >= 0):
            raise BadInput(f"a cost must be finite and not negative, not {cost}.")
        if self.n_runs < 1:
            raise BadInput(f"n_runs must be at least 1, not {self.n_runs!r}.")
        if self.started_at is not None and self.started_at.tzinfo is None:
            raise BadInput("started_at needs a time zone.")
        object.__setattr__(self, "tags", tuple(sorted(self.tags)))

    @property
    def cost_usd(self) -> Decimal | None:
        """Sum over the agents, else the reported total; None if any part is unknown."""
        known = _sum_known(a.cost_usd for a in self.agents) if self.agents else None
        return self.total_reported_usd if known is None else known

    @property
    def tokens(self) -> Tokens | None:
        """Sum over the agents; None if the usage of any is missing or there is none."""
        total = Tokens()
        for agent in self.agents:
            tokens = agent.tokens
            if tokens is None:
                return None
            total += tokens
        return total if self.agents else None

    @property
    def flags(self) -> tuple[Flag, ...]:
        """Flags of any agent."""
        return tuple(sorted({flag for agent in self.agents for flag in agent.flags}))

    @property
    def cut_short(self) -> bool:
        """Stopped at a limit: its cost and time are lower bounds (censored)."""
        return self.status in ("over_budget", "timed_out", "cancelled")

    def of_role(self, role: AgentRole) -> tuple[AgentUsage, ...]:
        """Its agents with this role."""
        return tuple(agent for agent in self.agents if agent.role == role)

    @property
    def max_concurrent(self) -> int:
        """The largest number of helpers at work at the same time."""
        edges = [
            edge
            for agent in self.agents
            if agent.role != "lead"
            for start, end in agent.intervals
            for edge in ((start, 1), (end, -1))
        ]
        at_work = most = 0
        for _, step in sorted(edges):
            at_work += step
            most = max(most, at_work)
        return most


def union_s(intervals: Iterable[Interval]) -> float:
    """Length of the union of intervals, in seconds: parallel parts count once."""
    total, reached = 0.0, -math.inf
    for start, end in sorted(intervals):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def with_reward(run: Run, reward: float, source: RewardSource) -> Run:
    """The same run, graded."""
    return replace(run, reward=reward, reward_source=source)


def _sum_known(parts: Iterable[Decimal | None]) -> Decimal | None:
    total = Decimal(0)
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def find_lead(agents: Sequence[AgentUsage]) -> AgentUsage | None:
    """The lead among agents, None if there is none."""
    return next((agent for agent in agents if agent.role == "lead"), None)
