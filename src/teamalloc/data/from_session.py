"""From what a log says to a run: roles, team, prices, time, and nothing private.

Everything here is the same for every format; a reader (``data/formats``) only extracts.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal

from teamalloc.data.formats import AgentTrace, Request, Session
from teamalloc.data.grouping import team_of
from teamalloc.data.prices import PriceBook, normalise_model
from teamalloc.data.roles import infer_roles
from teamalloc.data.run import (
    AgentRole,
    AgentUsage,
    Flag,
    Interval,
    Run,
    Source,
    Tokens,
    UsageSlice,
    union_s,
)
from teamalloc.data.team import Mode

Salt = Callable[[str, str], str]
"(kind, text) -> a salted hash to keep in its place"


def run_id_of(format_name: str, session_id: str) -> str:
    """The id of a session's run: 12 hex digits, the same at every ingest."""
    return hashlib.sha256(f"{format_name}\0{session_id}".encode()).hexdigest()[:12]


def request_keys(session: Session) -> list[str]:
    """Identities of its requests, in order."""
    return [r.key for agent in session.agents for r in agent.requests if r.key is not None]


def without_repeats(session: Session, repeated: Collection[str]) -> tuple[Session | None, int]:
    """Leave out requests that belong to another run, and those that occur twice in this one.

    A resumed or forked session starts with a copy of the old one. What was copied is neither work
    nor time of this run: its turns and intervals begin after the last copied request.

    Returns:
        The session (None if nothing of its own is left), and how many requests were left out.
    """
    seen: set[str] = set()
    n_left_out, last_copy, agents = 0, None, list[AgentTrace]()
    for agent in session.agents:
        own = []
        for request in agent.requests:
            if request.key is not None and (request.key in seen or request.key in repeated):
                n_left_out += 1
                if request.key in repeated and request.at is not None:
                    last_copy = request.at if last_copy is None else max(last_copy, request.at)
                continue
            if request.key is not None:
                seen.add(request.key)
            own.append(request)
        if own or not agent.requests or agent.agent_id == "lead":
            agents.append(replace(agent, requests=own))
    if last_copy is not None:
        session = _after(session, agents, last_copy)
    else:
        session = replace(session, agents=agents)
    return (session if _has_own_work(session, copied=n_left_out > 0) else None), n_left_out


def _after(session: Session, agents: Sequence[AgentTrace], last_copy: datetime) -> Session:
    """The session without what lies up to the last copied request."""
    turns = [at for at in session.turn_starts if at > last_copy]
    own_requests = [r.at for agent in agents for r in agent.requests if r.at is not None]
    start = min([*turns[:1], *own_requests], default=None)
    if start is None or (session.started_at is not None and session.started_at > last_copy):
        start = session.started_at  # the reader knew where its own part begins
    trimmed = [
        replace(
            agent,
            intervals=[
                (begin if start is None else max(begin, start), end)
                for begin, end in agent.intervals
                if end > last_copy
            ],
        )
        for agent in agents
    ]
    return replace(
        session,
        agents=trimmed,
        turn_starts=turns,
        started_at=start,
        n_prompts=min(session.n_prompts, max(1, len(turns))),
    )


def _has_own_work(session: Session, *, copied: bool) -> bool:
    if any(agent.requests or agent.usage_missing for agent in session.agents):
        return True
    if copied:
        return bool(session.turn_starts)
    told = session.team is not None or session.total_reported_usd is not None
    return told or bool(session.turn_starts) or any(a.intervals for a in session.agents)


def run_from_session(
    session: Session, *, format_name: str, reader_version: int, prices: PriceBook, salted: Salt
) -> Run:
    """Make a run of a session whose repeated requests have been left out.

    Args:
        session: what a reader extracted.
        format_name: of the reader.
        reader_version: of the reader.
        prices: prices each request alone, at its own time.
        salted: replaces task, working folder and branch, which are never stored as they are.

    Raises:
        BadInput: the log holds a value no run may have (a reward of 7).
    """
    origin = session.started_at or _earliest(session)
    roles = infer_roles(session.agents)
    agents = tuple(
        _agent(agent, roles[agent.agent_id], session.turn_starts, origin, prices)
        for agent in session.agents
    )
    active_s = session.active_s
    if active_s is None and any(agent.intervals for agent in agents):
        active_s = union_s(interval for agent in agents for interval in agent.intervals)
    span_s = session.span_s
    if span_s is None and session.ended_at is not None and origin is not None:
        span_s = max(0.0, (session.ended_at - origin).total_seconds())
    team = session.team
    if team is None:
        seated = [agent for agent in agents if agent.served_models]
        team = team_of(seated, mode=_mode(session.agents))
    tags = dict(session.tags)
    for kind, text in (("cwd", session.cwd), ("branch", session.branch)):
        if text:
            tags[kind] = salted(kind, text)
    return Run(
        run_id=run_id_of(format_name, session.session_id),
        team=team,
        source=Source(format_name, reader_version, session.session_id, session.digest),
        task_id=salted("task", session.task) if session.task else None,
        agents=agents,
        total_reported_usd=session.total_reported_usd,
        reward=session.reward,
        reward_source=session.reward_source if session.reward is not None else None,
        active_s=active_s,
        span_s=span_s,
        status=session.status,
        limits=session.limits,
        assigned=session.assigned,
        multi_turn=session.n_prompts > 1,
        turn_starts_s=tuple(_seconds(at, origin) for at in session.turn_starts),
        n_runs=session.n_runs,
        started_at=origin,
        client=session.client,
        client_version=session.client_version,
        tags=tuple(tags.items()),
    )


# --- one agent ------------------------------------------------------------------------------------


def _agent(
    trace: AgentTrace,
    role: AgentRole,
    turn_starts: Sequence[datetime],
    origin: datetime | None,
    prices: PriceBook,
) -> AgentUsage:
    usage = _slices(trace.requests, turn_starts, prices)
    if trace.usage_missing and all(piece.tokens is not None for piece in usage):
        usage = (*usage, UsageSlice(model=None, tokens=None))
    flags: set[Flag] = set()
    if any(request.lower_bound for request in trace.requests):
        flags.add("output_lower_bound")
    if any(piece.tokens is None for piece in usage):
        flags.add("usage_missing")
    if any(piece.tokens is not None and piece.cost_usd is None for piece in usage):
        flags.add("price_missing")
    if trace.damaged_lines:
        flags.add("damaged_lines")
    return AgentUsage(
        agent_id=trace.agent_id,
        role=role,
        parent_id=trace.parent_id,
        agent_label=trace.label,
        asked_model=trace.asked_model,
        usage=usage,
        intervals=tuple(_interval(begin, end, origin) for begin, end in sorted(trace.intervals)),
        waited_s=trace.waited_s,
        flags=tuple(sorted(flags)),
    )


@dataclass(frozen=True, slots=True)
class _Alike:
    """What requests must share to lie in one slice."""

    model: str | None
    effort: str | None
    band: int
    speed: str | None
    service_tier: str | None
    day: date | None
    turn: int
    with_usage: bool


@dataclass(slots=True)
class _Sum:
    tokens: Tokens = field(default_factory=Tokens)
    n_calls: int = 0
    reported_usd: Decimal | None = field(default_factory=Decimal)
    list_usd: Decimal | None = field(default_factory=Decimal)


def _slices(
    requests: Sequence[Request], turn_starts: Sequence[datetime], prices: PriceBook
) -> tuple[UsageSlice, ...]:
    sums: dict[_Alike, _Sum] = {}
    for request in requests:
        band, list_usd = _price(request, prices)
        day = None if request.at is None else request.at.astimezone(UTC).date()
        turn = 0 if request.at is None else max(0, bisect_right(turn_starts, request.at) - 1)
        model = (normalise_model(request.model) or None) if request.model else None
        known = request.tokens is not None
        alike = _Alike(
            model, request.effort, band, request.speed, request.service_tier, day, turn, known
        )
        total = sums.setdefault(alike, _Sum())
        total.tokens += request.tokens or Tokens()
        total.n_calls += request.n_calls
        total.reported_usd = _add(total.reported_usd, request.cost_reported_usd)
        total.list_usd = _add(total.list_usd, list_usd)
    return tuple(
        UsageSlice(
            model=alike.model,
            tokens=total.tokens if alike.with_usage else None,
            n_calls=total.n_calls,
            effort=alike.effort,
            context_band=alike.band,
            speed=alike.speed,
            service_tier=alike.service_tier,
            day=alike.day,
            turn=alike.turn,
            cost_reported_usd=total.reported_usd,
            cost_list_usd=total.list_usd,
        )
        for alike, total in sums.items()
    )


def _price(request: Request, prices: PriceBook) -> tuple[int, Decimal | None]:
    """Context tier and list price of one request; the price is None where it is unknown."""
    if request.tokens is None or not request.model:
        return 0, None
    band = prices.band(request.model, request.tokens, at=request.at)
    if band and request.n_calls != 1:
        return 0, None  # a sum says nothing about how large the prompt of each request was
    cost_usd = prices.cost_usd(
        request.model,
        request.tokens,
        at=request.at,
        speed=request.speed,
        service_tier=request.service_tier,
    )
    return band, cost_usd


def _add(total: Decimal | None, part: Decimal | None) -> Decimal | None:
    return None if total is None or part is None else total + part


# --- the team's mode ------------------------------------------------------------------------------


def _mode(agents: Sequence[AgentTrace]) -> Mode:
    """Whether the lead worked on while its helpers ran.

    It did if it changed a file meanwhile, or if more of its requests were answered meanwhile than
    it takes to start the helpers and to wait for them: one for each helper.
    """
    leads = [agent for agent in agents if agent.agent_id == "lead"]
    helpers = [agent for agent in agents if agent.agent_id != "lead" and agent.intervals]
    spans = [interval for helper in helpers for interval in helper.intervals]

    def meanwhile(at: datetime | None) -> bool:
        return at is not None and any(begin < at < end for begin, end in spans)

    for lead in leads:
        n_requests = sum(meanwhile(request.at) for request in lead.requests)
        if n_requests > len(helpers) or any(map(meanwhile, lead.edit_times)):
            return "async"
    return "blocking"


# --- time -----------------------------------------------------------------------------------------


def _earliest(session: Session) -> datetime | None:
    """A start for a log that names none: the first moment it knows of."""
    moments = [*session.turn_starts]
    for agent in session.agents:
        moments += [begin for begin, _ in agent.intervals]
        moments += [request.at for request in agent.requests if request.at is not None]
    return min(moments, default=None)


def _seconds(at: datetime, origin: datetime | None) -> float:
    return 0.0 if origin is None else (at - origin).total_seconds()


def _interval(begin: datetime, end: datetime, origin: datetime | None) -> Interval:
    start_s = _seconds(begin, origin)
    return start_s, max(start_s, _seconds(end, origin))
