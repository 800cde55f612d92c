"""Answers and fits as reports: what is said, in which words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from teamalloc.allocator.answer import Answer
from teamalloc.allocator.recommend import Choice, Estimate, Recommendation, Step
from teamalloc.allocator.repair import Repair
from teamalloc.data.durations import format_duration
from teamalloc.reports.report import Facts, Report, Section, Table, Text

NO_OWN_RUNS = "no own runs: order of magnitude only"


def short_answer(answer: Answer) -> Report:
    """Within a screen: the team, the numbers, what else was close, what stands behind it."""
    found = answer.recommendation
    sections = [Section("", (Text(found.best.team),)), Section("", (_numbers(found.best, answer),))]
    if found.verdict == "infeasible":
        sections.append(Section("What would make something fit", (_repairs(found),)))
    sections.append(Section("", (Facts(tuple(_facts(answer))),)))
    return Report(_headline(answer), tuple(sections), answer_data(answer))


def full_report(answer: Answer) -> Report:
    """Everything a colleague needs to check the answer later."""
    found = answer.recommendation
    short = short_answer(answer)
    sections = [
        *short.sections,
        Section("Question", (Facts(tuple(_question(answer))),)),
        Section("Frontier", _frontier(found)),
        Section("Next dollar", _steps(found)),
        Section("Evidence", tuple(_evidence(answer))),
        Section("Assumptions", tuple(Text(text) for text in ASSUMPTIONS)),
        Section("Versions and digests", (Facts(tuple(_versions(answer))),)),
    ]
    return Report(short.title, tuple(sections), short.data)


ASSUMPTIONS = (
    "Reward is that of the average task; the interval says how well the average is known. Cost and "
    "latency intervals are those of a new run or batch.",
    "p is the predictive probability that a new run (or batch) keeps a limit; a limit holds where p "
    "reaches the asked confidence. Both limits together are taken as independent.",
    "Chosen is the team with the most reward above a careful choice, weighed by a power of the "
    "probability that the limits truly hold, because the best of many estimates is optimistic.",
    "A tie is a probability below 0.8 of earning more than the runner-up or the lead alone, or a gain "
    "below half a point. A cheaper lead alone, or well-tested team, then takes over; a cheaper "
    "runner-up does if the gain is below half a point.",
    "Costs are forecast tokens at the prices of the day named below, in the mix of cached and fresh "
    "tokens that the logs show.",
    "Published figures are a prior whose width is learned; own runs outweigh it as they come in.",
)


def answer_data(answer: Answer) -> Mapping[str, object]:
    """The answer for machines."""
    found = answer.recommendation
    data: dict[str, object] = {
        "notice": NO_OWN_RUNS if answer.evidence.n_usable == 0 else None,
        "verdict": found.verdict,
    }
    data |= msgspec.to_builtins(found)
    data["question"] = msgspec.to_builtins(answer.question)
    data["evidence"] = msgspec.to_builtins(answer.evidence)
    data["warnings"] = list(answer.warnings)
    data["unit_runs"] = answer.forecaster.curves["cost"].unit_runs
    data["prices_on"] = answer.prices_on.isoformat()
    data["prices_digest"] = answer.prices_digest
    data["versions"] = dict(answer.versions)
    return data


def points(reward: float) -> str:
    """A reward in points of 100."""
    return f"{100.0 * reward:.1f}"


def usd(value: float) -> str:
    """US dollars with sensible digits."""
    if abs(value) >= 1000:
        return f"${value:,.0f}"
    if abs(value) >= 1:
        return f"${value:.2f}"
    return f"${value:.4f}" if abs(value) >= 0.001 else f"${value:.2g}"


def _headline(answer: Answer) -> str:
    found = answer.recommendation
    own = answer.evidence.n_usable
    notice = f"{NO_OWN_RUNS[0].upper()}{NO_OWN_RUNS[1:]}. " if own == 0 else ""
    if found.verdict == "infeasible":
        return (
            f"{notice}Nothing fits: {_limits(answer)}. Nearest, but no answer: {found.best.words}."
        )
    tie = " (a tie, the cheaper one)" if found.verdict == "tie" and found.tied_with else ""
    tie = tie or (" (a tie)" if found.verdict == "tie" else "")
    return f"{notice}Run {found.best.words}{tie}."


def _limits(answer: Answer) -> str:
    problem = answer.question.problem
    parts = []
    if problem.budget_usd is not None:
        parts.append(usd(problem.budget_usd))
    if problem.latency_s is not None:
        parts.append(format_duration(problem.latency_s))
    kept = " and ".join(parts) or "no limits"
    tasks = f" for {problem.n_tasks} tasks" if problem.n_tasks > 1 else ""
    return f"no team keeps {kept}{tasks} at confidence {problem.confidence:g}"


def _numbers(choice: Choice, answer: Answer) -> Table:
    problem = answer.question.problem
    low_high = f"{points(choice.reward.low)} to {points(choice.reward.high)}"
    rows = [("reward", f"{points(choice.reward.value)} points", low_high, "", "")]
    limit = "" if problem.budget_usd is None else usd(problem.budget_usd)
    rows.append(_number("cost", choice.cost_usd, usd, limit))
    if choice.latency_s is None:
        rows.append(("latency", "unknown", "", "", ""))
    else:
        limit = "" if problem.latency_s is None else format_duration(problem.latency_s)
        rows.append(_number("latency", choice.latency_s, format_duration, limit))
    if problem.budget_usd is not None and problem.latency_s is not None:
        rows.append(("both limits", "", "", "", f"{choice.p_both_ok:.2f}"))
    return Table(("", "estimate>", "90 % interval>", "limit>", "p kept>"), tuple(rows))


def _number(
    name: str, value: Estimate, show: Callable[[float], str], limit: str
) -> tuple[str, str, str, str, str]:
    kept = "" if value.p_ok is None else f"{value.p_ok:.2f}"
    return name, show(value.value), f"{show(value.low)} to {show(value.high)}", limit, kept


def _brief(choice: Choice) -> str:
    time = "" if choice.latency_s is None else f", {format_duration(choice.latency_s.value)}"
    return (
        f"{choice.words}: {points(choice.reward.value)} points, {usd(choice.cost_usd.value)}{time}"
    )


def _facts(answer: Answer) -> Iterator[tuple[str, str]]:
    found = answer.recommendation
    yield "lead alone", _baseline(found)
    if found.tied_with is not None:
        yield "tied with", _brief(found.tied_with)
    if found.runner_up is not None:
        yield "runner-up", f"{_brief(found.runner_up)}; {found.why}"
    if found.other_kind is not None and found.other_kind != found.runner_up:
        yield "other kind", _brief(found.other_kind)
    if found.next_dollar:
        yield "next dollar", _step(found.next_dollar[0])
    yield "evidence", _evidence_line(answer)
    for warning in answer.warnings:
        yield "note", warning


def _baseline(found: Recommendation) -> str:
    if found.best.team == found.baseline.team:
        return "this is the lead alone"
    efficiency = (
        "" if found.best.eta is None else f"; {found.best.eta:.2g} points per $ over its own lead"
    )
    fits = "" if found.baseline.holds else " (keeps the limits no better)"
    if found.verdict == "infeasible":
        return f"{_brief(found.baseline)}{fits}"
    p = "" if found.p_better is None else f"; P(the team earns more) {found.p_better:.2f}"
    return f"{_brief(found.baseline)}{fits}{p}{efficiency}"


def _step(step: Step) -> str:
    gain = f"{step.gain.value:+.1f} points ({step.gain.low:+.1f} to {step.gain.high:+.1f})"
    cost = (
        f"for {usd(step.added_usd)} more"
        if step.added_usd > 0
        else f"and saves {usd(-step.added_usd)}"
    )
    over = "" if step.choice.holds else ", but then a limit no longer holds"
    return f"{step.change}: {gain} {cost} a task{over}"


def _evidence_line(answer: Answer) -> str:
    used, found = answer.evidence, answer.recommendation
    if used.n_usable == 0:
        return f"no own runs in a fit ({used.n_runs} stored); published figures"
    seen = f"run {found.best.n_runs} times" if found.best.n_runs else "never run"
    observed = used.n_rewards - used.n_assigned
    return (
        f"{used.n_usable} own runs ({used.n_rewards} graded: {used.n_assigned} assigned, {observed} observed), "
        f"{used.n_tasks} tasks, {used.n_teams} teams; this very team: {seen}; published figures as prior"
    )


def _repairs(found: Recommendation) -> Facts:
    return Facts(tuple((repair.change, _repair(repair)) for repair in found.repairs))


def _repair(repair: Repair) -> str:
    parts = []
    if repair.change in ("budget", "budget and latency") and repair.budget_usd is not None:
        parts.append(f"--budget {repair.budget_usd:g}")
    if repair.change in ("latency", "budget and latency") and repair.latency_s is not None:
        parts.append(f"--max-latency {repair.latency_s:.0f}s")
    if repair.change == "confidence":
        parts.append(f"--confidence {repair.confidence:g}")
    if repair.change == "tasks":
        parts.append(f"--tasks {repair.n_tasks}")
    return f"{' '.join(parts)} would do, with {repair.team}"


def _question(answer: Answer) -> Iterator[tuple[str, str]]:
    question, problem = answer.question, answer.question.problem
    yield "budget", "none" if problem.budget_usd is None else usd(problem.budget_usd)
    yield "max latency", "none" if problem.latency_s is None else format_duration(problem.latency_s)
    yield "tasks", f"{problem.n_tasks}, {problem.n_parallel} at a time"
    yield "confidence", f"{problem.confidence:g}"
    yield "seed", str(problem.seed)
    yield "leads asked for", ", ".join(question.leads) or "those that were run"
    yield "helpers asked for", ", ".join(question.helpers) or "those that were run"
    caps = f"{question.max_planners}, {question.max_implementers}, {question.max_verifiers}"
    yield "at most (planners, implementers, verifiers)", caps
    yield "like", ", ".join(f"{k}={v}" for k, v in question.like) or "all runs"
    yield (
        "teams looked at",
        f"{answer.recommendation.n_teams}, of which {answer.recommendation.n_holding} hold",
    )


def _frontier(found: Recommendation) -> tuple[Text | Table, ...]:
    if not found.frontier:
        return (Text("No team holds."),)
    rows = tuple(
        (
            choice.team,
            points(choice.reward.value),
            usd(choice.cost_usd.value),
            "unknown" if choice.latency_s is None else format_duration(choice.latency_s.value),
            f"{choice.p_both_ok:.2f}",
            str(choice.n_runs),
        )
        for choice in found.frontier
    )
    return (Table(("team", "points>", "cost>", "latency>", "p kept>", "own runs>"), rows),)


def _steps(found: Recommendation) -> tuple[Text | Table, ...]:
    if not found.next_dollar:
        return (Text("No single change is expected to earn more."),)
    rows = tuple(
        (
            step.change,
            f"{step.gain.value:+.1f}",
            f"{step.gain.low:+.1f} to {step.gain.high:+.1f}",
            f"{step.gain.p_ok:.2f}",
            usd(step.added_usd),
            "yes" if step.choice.holds else "no",
        )
        for step in found.next_dollar
    )
    head = ("change", "points>", "90 % interval>", "P(more)>", "$ a task>", "limits hold")
    return (Table(head, rows),)


def _evidence(answer: Answer) -> Iterator[Text | Facts]:
    used = answer.evidence
    rows = [
        ("own runs", f"{used.n_runs}, of which {used.n_usable} reach a fit"),
        ("tasks, teams", f"{used.n_tasks}, {used.n_teams}"),
        ("with a reward, a cost, a time", f"{used.n_rewards}, {used.n_costs}, {used.n_latencies}"),
        ("assigned", f"{used.n_assigned} of the graded runs"),
        ("from, to", "undated" if used.span is None else " to ".join(used.span)),
    ]
    rows += [(f"{n} runs", reason) for reason, n in used.left_out]
    yield Facts(tuple(rows))
    for citation in used.published:
        yield Text(f"Prior: {citation}")


def _versions(answer: Answer) -> Iterator[tuple[str, str]]:
    yield from answer.versions
    yield "curves", answer.recommendation.digest
    yield "prices on", answer.prices_on.isoformat()
    yield "price list", answer.prices_digest
