"""What is one run: several sessions merged into one, or one session split at a turn.

Pure functions on records. Both only move what was read: the tokens and costs of a merged run, and
of the two parts of a split one, add up exactly to those they came from.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from teamalloc.data.run import AgentUsage, Interval, Limits, Run, UsageSlice, find_lead, union_s
from teamalloc.data.team import Mode, Seat, TeamConfig
from teamalloc.errors import BadInput


def chronological(run: Run) -> tuple[datetime, str]:
    """Sort key: by start, then by id; a run without a time comes first."""
    return (run.started_at or datetime.min.replace(tzinfo=UTC), run.run_id)


# --- the team -------------------------------------------------------------------------------------


def team_of(agents: Sequence[AgentUsage], *, mode: Mode = "blocking") -> TeamConfig | None:
    """The team these agents make up: a seat's count is its number of distinct agents.

    An agent's model and effort are those of most of its calls; one that made none has the model it
    was asked for. Agents of unknown role take no seat. None = there is no lead, or a model is not
    known or has a name that no team can hold: the run then counts in spend only.
    """
    lead = find_lead(agents)
    if lead is None:
        return None
    members = [lead, *(agent for agent in agents if agent.role not in ("lead", "unknown"))]
    try:
        seats = [seat for agent in members if (seat := _seat(agent)) is not None]
    except BadInput:
        return None
    return TeamConfig(seats[0], tuple(seats[1:]), mode) if len(seats) == len(members) else None


def _seat(agent: AgentUsage) -> Seat | None:
    calls: Counter[tuple[str, str | None]] = Counter()
    for piece in agent.usage:
        if piece.model is not None:
            calls[piece.model, piece.effort] += piece.n_calls
    if calls:
        model, effort = max(calls, key=lambda who: (calls[who], who[0], who[1] or ""))
    elif agent.asked_model is not None:
        model, effort = agent.asked_model, None
    else:
        return None
    return None if agent.role == "unknown" else Seat(agent.role, model, 1, effort)


# --- merge ----------------------------------------------------------------------------------------


def merge(runs: Iterable[Run]) -> Run:
    """Several sessions as one attempt, under the id, tags and source of the earliest.

    All leads become one; helpers stay apart (``2.worker`` is one of the second session). The reward
    is the last one given, the status that of the last session. Work that overlaps counts once,
    where every session has a time. The result is multi-turn only if one of the sessions was:
    merging them says that they are one attempt.

    Raises:
        BadInput: no run, or one of them is the mean of several runs.
    """
    parts = sorted(runs, key=chronological)
    if not parts or any(run.n_runs != 1 for run in parts):
        raise BadInput("only single runs can be merged, not the mean of several.")
    if len(parts) == 1:
        return parts[0]
    first, last = parts[0], parts[-1]
    shifts = _shifts_s(parts)
    agents = _merge_agents(parts, shifts)
    graded = [run for run in parts if run.reward is not None]
    return replace(
        first,
        team=_merge_team(parts, agents),
        agents=agents,
        task_id=next((run.task_id for run in parts if run.task_id is not None), None),
        total_reported_usd=_merge_total_usd(parts),
        reward=graded[-1].reward if graded else None,
        reward_source=graded[-1].reward_source if graded else None,
        active_s=_merge_active_s(parts, shifts),
        span_s=_merge_span_s(parts, shifts),
        status=last.status,
        limits=first.limits if len({run.limits for run in parts}) == 1 else Limits(),
        assigned=all(run.assigned for run in parts),
        multi_turn=any(run.multi_turn for run in parts),
        turn_starts_s=_merge_turn_starts_s(parts, shifts),
        plan_digest=first.plan_digest if len({run.plan_digest for run in parts}) == 1 else None,
    )


def _shifts_s(parts: Sequence[Run]) -> tuple[float, ...] | None:
    """Start of each after the start of the first; None = some start is not known."""
    starts = [run.started_at for run in parts if run.started_at is not None]
    if len(starts) < len(parts):
        return None
    return tuple((start - starts[0]).total_seconds() for start in starts)


def _merge_team(parts: Sequence[Run], agents: Sequence[AgentUsage]) -> TeamConfig | None:
    teams = {run.team for run in parts}
    # A team set by an experiment stays what it is, however many sessions it took; nor can anything
    # be worked out where the logs have totals only.
    if len(teams) == 1 and (not agents or all(run.assigned for run in parts)):
        return parts[0].team
    is_async = any(team is not None and team.mode == "async" for team in teams)
    return team_of(agents, mode="async" if is_async else "blocking")


def _merge_agents(parts: Sequence[Run], shifts: tuple[float, ...] | None) -> tuple[AgentUsage, ...]:
    if not any(run.agents for run in parts):
        return ()
    leads, helpers = [], []
    n_turns = 0
    for n, run in enumerate(parts, start=1):
        shift_s = None if shifts is None else shifts[n - 1]
        members = run.agents or (_totals_as_agent(run),)
        lead_ids = {agent.agent_id for agent in members if agent.role == "lead"}
        for agent in members:
            moved = _moved(agent, n_turns, shift_s)
            if agent.role == "lead":
                leads.append(moved)
                continue
            of_lead = agent.parent_id is None or agent.parent_id in lead_ids
            parent_id = "lead" if of_lead else f"{n}.{agent.parent_id}"
            helpers.append(replace(moved, agent_id=f"{n}.{agent.agent_id}", parent_id=parent_id))
        n_turns += _n_turns(run)
    return (_merge_leads(leads), *helpers) if leads else tuple(helpers)


def _totals_as_agent(run: Run) -> AgentUsage:
    """A log with totals only, beside others that have agents: its cost must not get lost."""
    spent = UsageSlice(None, None, n_calls=0, cost_reported_usd=run.total_reported_usd)
    return AgentUsage("lead", "lead", usage=(spent,), flags=("usage_missing",))


def _moved(agent: AgentUsage, n_turns: int, shift_s: float | None) -> AgentUsage:
    """The same agent later: after ``n_turns`` turns, ``shift_s`` seconds (None = not known)."""
    intervals: tuple[Interval, ...] = ()
    if shift_s is not None:
        intervals = tuple((start + shift_s, end + shift_s) for start, end in agent.intervals)
    usage = tuple(replace(piece, turn=piece.turn + n_turns) for piece in agent.usage)
    return replace(agent, usage=usage, intervals=intervals)


def _merge_leads(leads: Sequence[AgentUsage]) -> AgentUsage:
    waits = [lead.waited_s for lead in leads if lead.waited_s is not None]
    return replace(
        leads[0],
        agent_id="lead",
        parent_id=None,
        usage=tuple(piece for lead in leads for piece in lead.usage),
        intervals=tuple(sorted(interval for lead in leads for interval in lead.intervals)),
        waited_s=sum(waits) if len(waits) == len(leads) else None,
        flags=tuple(sorted({flag for lead in leads for flag in lead.flags})),
    )


def _n_turns(run: Run) -> int:
    last = max((piece.turn for agent in run.agents for piece in agent.usage), default=0)
    return max(len(run.turn_starts_s), last + 1)


def _merge_turn_starts_s(
    parts: Sequence[Run], shifts: tuple[float, ...] | None
) -> tuple[float, ...]:
    """Start of every turn; empty if that of any is not known, since turns are known by position."""
    if shifts is None:
        return ()
    starts = [
        (run.turn_starts_s or (0.0,), shift) for run, shift in zip(parts, shifts, strict=True)
    ]
    if any(len(own) != _n_turns(run) for run, (own, _) in zip(parts, starts, strict=True)):
        return ()
    return tuple(start + shift for own, shift in starts for start in own)


def _merge_total_usd(parts: Sequence[Run]) -> Decimal | None:
    """Only where a log states a total: it then stands beside what the agents of others cost."""
    if all(run.total_reported_usd is None for run in parts):
        return None
    total = Decimal(0)
    for run in parts:
        cost = run.cost_usd if run.total_reported_usd is None else run.total_reported_usd
        if cost is None:
            return None
        total += cost
    return total


def _merge_active_s(parts: Sequence[Run], shifts: tuple[float, ...] | None) -> float | None:
    active = [run.active_s for run in parts if run.active_s is not None]
    if len(active) < len(parts):
        return None
    if shifts is None:
        return sum(active)
    alone_s = sum(union_s(_intervals(run.agents)) for run in parts)
    together_s = union_s(
        (start + shift, end + shift)
        for run, shift in zip(parts, shifts, strict=True)
        for start, end in _intervals(run.agents)
    )
    return max(0.0, sum(active) - (alone_s - together_s))


def _merge_span_s(parts: Sequence[Run], shifts: tuple[float, ...] | None) -> float | None:
    if shifts is None:
        return None
    ends = [
        shift + run.span_s
        for run, shift in zip(parts, shifts, strict=True)
        if run.span_s is not None
    ]
    return max(ends) if len(ends) == len(parts) else None


def _intervals(agents: Iterable[AgentUsage]) -> list[Interval]:
    return [interval for agent in agents for interval in agent.intervals]


# --- split ----------------------------------------------------------------------------------------


def turn_at(run: Run, moment: datetime) -> int:
    """The first turn that starts at ``moment`` or later: where to split by time.

    Raises:
        BadInput: the run has no start time, or no turn starts so late.
    """
    if run.started_at is None:
        raise BadInput(f"run {run.run_id} has no time in its log.", remedy="Split it at a turn.")
    if moment.tzinfo is None:
        raise BadInput("the time to split at needs a time zone.")
    moment_s = (moment - run.started_at).total_seconds()
    for turn, start_s in enumerate(run.turn_starts_s):
        if start_s >= moment_s:
            return turn
    raise BadInput(f"run {run.run_id} has no turn that starts at {moment.isoformat()} or later.")


def split(run: Run, at_turn: int) -> tuple[Run, Run]:
    """The turns before ``at_turn`` as run ``<id>.1``, the others as ``<id>.2``.

    An agent may end up in both parts; one that left nothing in a part is not in it. Reward, task,
    limits and reported total were those of the whole: the parts have none.

    Raises:
        BadInput: the run has no such turn, no agents, or is the mean of several runs.
    """
    n_turns = len(run.turn_starts_s)
    if run.n_runs != 1 or not run.agents:
        raise BadInput(f"run {run.run_id} has totals only and cannot be split.")
    if not 1 <= at_turn < n_turns:
        raise BadInput(
            f"run {run.run_id} cannot be split at turn {at_turn}.",
            remedy=f"It has {n_turns} turns: give 1 to {n_turns - 1}."
            if n_turns > 1
            else "It has a single turn.",
        )
    boundary_s = run.turn_starts_s[at_turn]
    earlier = _part(run, ".1", (0, at_turn), (0.0, boundary_s))
    later = _part(run, ".2", (at_turn, math.inf), (boundary_s, math.inf))
    ends = [end for _, end in _intervals(earlier.agents)]
    return (
        replace(earlier, status="unknown", span_s=max(ends, default=None)),
        replace(later, span_s=None if run.span_s is None else max(0.0, run.span_s - boundary_s)),
    )


def _part(run: Run, suffix: str, turns: tuple[int, float], window: Interval) -> Run:
    """Turns first ≤ t < stop, which lie in the window (seconds after the start of ``run``)."""
    shift_s = window[0]
    agents = tuple(
        part for agent in run.agents if (part := _agent_part(agent, turns, window)) is not None
    )
    ids = {agent.agent_id for agent in agents}
    agents = tuple(a if a.parent_id in ids else replace(a, parent_id=None) for a in agents)
    starts = [s - shift_s for t, s in enumerate(run.turn_starts_s) if turns[0] <= t < turns[1]]
    mode: Mode = "blocking" if run.team is None else run.team.mode
    return replace(
        run,
        run_id=run.run_id + suffix,
        team=run.team if run.assigned else team_of(agents, mode=mode),
        task_id=None,
        agents=agents,
        total_reported_usd=None,
        reward=None,
        reward_source=None,
        active_s=_share_s(run, agents),
        limits=Limits(),
        multi_turn=len(starts) > 1,
        turn_starts_s=tuple(starts),
        started_at=run.started_at and run.started_at + timedelta(seconds=shift_s),
        plan_digest=None,
    )


def _agent_part(agent: AgentUsage, turns: tuple[int, float], window: Interval) -> AgentUsage | None:
    usage = tuple(
        replace(piece, turn=piece.turn - turns[0])
        for piece in agent.usage
        if turns[0] <= piece.turn < turns[1]
    )
    intervals = tuple(
        (max(start, window[0]) - window[0], min(end, window[1]) - window[0])
        for start, end in agent.intervals
        if start < window[1] and (end > window[0] or start >= window[0])
    )
    n_left = len(usage) + len(intervals)
    n_all = len(agent.usage) + len(agent.intervals)
    if not n_left and (n_all or turns[0] > 0):  # one without any trace stays in the first part
        return None
    is_whole = n_left == n_all
    return replace(
        agent, usage=usage, intervals=intervals, waited_s=agent.waited_s if is_whole else None
    )


def _share_s(run: Run, agents: Sequence[AgentUsage]) -> float | None:
    """Active time of these agents, whose intervals are a part of the run's."""
    whole_s = union_s(_intervals(run.agents))
    if run.active_s is None or whole_s == 0:
        return None
    return run.active_s * (union_s(_intervals(agents)) / whole_s)
