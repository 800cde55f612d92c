"""``allocate runs list | show | spend``."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Annotated

import typer

from teamalloc.cli.options import AsJson, Store, existing_store, needed_store
from teamalloc.cli.runs import filters
from teamalloc.cli.runs.filters import Filter
from teamalloc.data.run import AgentUsage, Run, UsageSlice
from teamalloc.errors import UnknownName
from teamalloc.reports.report import Facts, Report, Section, Table, Text

UNKNOWN = "unknown"
NO_RUNS = "No runs are stored. Ingest logs first: allocate ingest PATH."

Key = Callable[[Run, AgentUsage, UsageSlice], str]
GROUPS: dict[str, Key] = {
    "role": lambda _run, agent, _piece: agent.role,
    "model": lambda _run, _agent, piece: piece.model or UNKNOWN,
    "client": lambda run, _agent, _piece: run.client or UNKNOWN,
    "day": lambda _run, _agent, piece: str(piece.day or UNKNOWN),
    "task": lambda run, _agent, _piece: run.task_id or "none",
}


def register(app: typer.Typer) -> None:
    """Add the commands; without one, `list`."""
    app.callback(invoke_without_command=True)(_list_if_alone)
    app.command("list", help="List runs, the newest last.")(list_runs)
    app.command("show", help="Show one run by agent and role. RUN may be `last`.")(show)
    app.command("spend", help="What was spent, by role, model, client, day or task.")(spend)


def _list_if_alone(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        list_runs()


def list_runs(
    model: filters.Model = None,
    role: filters.Role = None,
    client: filters.Client = None,
    format: filters.Format = None,
    task: filters.Task = None,
    tag: filters.Tag = None,
    since: filters.Since = None,
    until: filters.Until = None,
    no_reward: filters.NoReward = False,
    limit: Annotated[int, typer.Option(metavar="N", help="The newest N; 0 = all.")] = 30,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """List."""
    chosen = Filter(model, role, client, format, task, tuple(tag or ()), since, until, no_reward)
    runs, labels = read(store, chosen)
    shown = runs[-limit:] if limit > 0 else runs
    _print(_listing(runs, shown, labels), as_json)


def show(
    run: Annotated[str, typer.Argument(metavar="RUN|last")],
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Show one."""
    with needed_store(store) as opened:
        found, labels = opened.run(run), opened.labels()
    _print(_one(found, labels), as_json)


def spend(
    by: Annotated[str, typer.Option(help="role, model, client, day or task.")] = "role",
    model: filters.Model = None,
    role: filters.Role = None,
    client: filters.Client = None,
    format: filters.Format = None,
    task: filters.Task = None,
    tag: filters.Tag = None,
    since: filters.Since = None,
    until: filters.Until = None,
    store: Store = None,
    as_json: AsJson = False,
) -> None:
    """Add up."""
    if by not in GROUPS:
        raise UnknownName("group of spend", by, GROUPS)
    runs, labels = read(
        store, Filter(model, role, client, format, task, tuple(tag or ()), since, until)
    )
    _print(_spending(runs, by, labels), as_json)


def read(url: str | None, chosen: Filter) -> tuple[list[Run], dict[str, str]]:
    """The chosen runs and the label table; nothing where there is no store."""
    with existing_store(url) as opened:
        if opened is None:
            return [], {}
        labels = opened.labels()
        return chosen.apply(opened.runs(), labels), labels


def _print(report: Report, as_json: bool) -> None:
    from teamalloc.reports.renderers import renderers

    sys.stdout.write(renderers()["json" if as_json else "terminal"].render(report))


def _listing(runs: list[Run], shown: list[Run], labels: dict[str, str]) -> Report:
    from teamalloc.data.records import as_row

    if not runs:
        return Report(NO_RUNS, (), {"runs": []})
    rows = tuple(
        (
            run.run_id,
            "" if run.started_at is None else f"{run.started_at.astimezone():%Y-%m-%d %H:%M}",
            labels.get(run.task_id or "", run.task_id or "")[:24],
            str(run.team or UNKNOWN)[:60],
            "" if run.reward is None else f"{run.reward:.2f}",
            _usd(run.cost_usd),
            _seconds(run.active_s),
        )
        for run in shown
    )
    head = ("run", "started", "task", "team", "reward>", "cost>", "time>")
    more = "" if len(shown) == len(runs) else f", the newest {len(shown)} shown (--limit 0: all)"
    title = f"{len(runs)} runs{more}."
    return Report(title, (Section("", (Table(head, rows),)),), {"runs": [as_row(r) for r in shown]})


def _one(run: Run, labels: dict[str, str]) -> Report:
    import msgspec

    facts = [
        ("team", str(run.team or UNKNOWN)),
        ("task", labels.get(run.task_id or "", run.task_id or "none")),
        ("reward", "not graded" if run.reward is None else f"{run.reward:g} ({run.reward_source})"),
        ("cost", _usd(run.cost_usd)),
        ("active time", _seconds(run.active_s)),
        ("first to last row", _seconds(run.span_s)),
        ("status", run.status + (", several prompts" if run.multi_turn else "")),
        ("most helpers at once", str(run.max_concurrent)),
        ("read from", f"{run.source.format}, session {run.source.session_id}"),
        ("client", f"{run.client or UNKNOWN} {run.client_version or ''}".strip()),
        ("tags", ", ".join(f"{k}={labels.get(v, v)}" for k, v in run.tags) or "none"),
    ]
    head = (
        "agent",
        "role",
        "asked",
        "served",
        "calls>",
        "input>",
        "cached>",
        "written>",
        "output>",
        "cost>",
    )
    agents = Table(head, tuple(_agent_row(agent) for agent in run.agents))
    flags = sorted({(a.agent_id, f) for a in run.agents for f in a.flags})
    notes = tuple(Text(f"{agent}: {flag.replace('_', ' ')}") for agent, flag in flags)
    sections = (Section("", (Facts(tuple(facts)),)), Section("Agents", (agents, *notes)))
    return Report(
        f"Run {run.run_id}", sections, msgspec.to_builtins(run) | {"cost_usd": run.cost_usd}
    )


def _agent_row(agent: AgentUsage) -> tuple[str, ...]:
    tokens = agent.tokens
    known = tokens is not None and bool(agent.usage)
    kinds = ("", "", "", "") if tokens is None else (
        f"{tokens.fresh_input:,}",
        f"{tokens.cache_read:,}",
        f"{tokens.cache_write_5m + tokens.cache_write_1h:,}",
        f"{tokens.output:,}",
    )  # fmt: skip
    label = (
        agent.agent_id if agent.agent_label is None else f"{agent.agent_id} ({agent.agent_label})"
    )
    return (
        label[:36],
        agent.role,
        agent.asked_model or "",
        ", ".join(agent.served_models) or UNKNOWN,
        str(agent.n_calls),
        *(kinds if known else (UNKNOWN, "", "", "")),
        _usd(agent.cost_usd if agent.usage else None),
    )


def _spending(runs: list[Run], by: str, labels: dict[str, str]) -> Report:
    known: dict[str, Decimal] = defaultdict(Decimal)
    unknown: dict[str, int] = defaultdict(int)
    calls: dict[str, int] = defaultdict(int)
    for key, cost, n_calls in (part for run in runs for part in _parts(run, GROUPS[by])):
        calls[key] += n_calls
        if cost is None:
            unknown[key] += 1
        else:
            known[key] += cost
    total = sum(known.values(), Decimal(0))
    keys = sorted({*known, *unknown}, key=lambda k: (-known[k], k))
    rows = tuple(
        (
            labels.get(key, key),
            f"${known[key]:,.4f}",
            f"{100 * known[key] / total:.0f} %" if total else "",
            str(calls[key]) if calls[key] else "",
            str(unknown[key]) if unknown[key] else "",
        )
        for key in keys
    )
    n_unknown = sum(unknown.values())
    more = f"; {n_unknown} parts of unknown cost are not in it" if n_unknown else ""
    data = {
        "by": by,
        "total_usd": total,
        "n_runs": len(runs),
        "parts": [
            {"key": k, "cost_usd": known[k], "n_calls": calls[k], "n_unknown": unknown[k]}
            for k in keys
        ],
    }
    if not runs:
        return Report(NO_RUNS, (), data)
    head = (by, "cost>", "share>", "calls>", "of unknown cost>")
    return Report(
        f"${total:,.4f} in {len(runs)} runs{more}.", (Section("", (Table(head, rows),)),), data
    )


def _parts(run: Run, key: Key) -> Iterator[tuple[str, Decimal | None, int]]:
    """Each part of a run's cost once; a total that no agent accounts for is a part of its own."""
    pieces = [(agent, piece) for agent in run.agents for piece in agent.usage]
    costs = [piece.cost_usd for _, piece in pieces]
    if run.total_reported_usd is not None and (not pieces or None in costs):
        nobody = AgentUsage("whole run", "unknown")
        yield key(run, nobody, UsageSlice(None, None)), run.total_reported_usd * run.n_runs, 0
        return
    if not pieces:
        nobody = AgentUsage("whole run", "unknown")
        yield key(run, nobody, UsageSlice(None, None)), None, 0
    for (agent, piece), cost in zip(pieces, costs, strict=True):
        yield key(run, agent, piece), None if cost is None else cost * run.n_runs, piece.n_calls


def _usd(cost: Decimal | None) -> str:
    return UNKNOWN if cost is None else f"${cost:,.4f}" if cost < 100 else f"${cost:,.2f}"


def _seconds(seconds: float | None) -> str:
    from teamalloc.data.durations import format_duration

    return UNKNOWN if seconds is None else format_duration(seconds)
