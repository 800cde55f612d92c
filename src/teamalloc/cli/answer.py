"""``allocate --budget 50 --max-latency 30m``: the answer."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from teamalloc.cli.files import write_file
from teamalloc.cli.options import AsJson, Prices, Store, existing_store, parse_day, parse_tag, today
from teamalloc.errors import BadInput, Infeasible

if TYPE_CHECKING:
    from teamalloc.allocator.answer import Answer, Question

HELP = """Which team of coding agents to run, for a budget and a deadline.

Answers from your own logged runs (allocate ingest), with published figures as a prior; without
runs, from the published figures alone.

\b
Examples:
  allocate --budget 50 --max-latency 30m
  allocate --budget 400 --tasks 50 --parallel 4 --max-latency 8h
  allocate --budget 10 --lead gpt-5.6-sol@xhigh --helper gpt-5.6-luna --json
  allocate --budget 50 --report answer.md --save plan.json

Exit codes: 0 an answer or a tie, 2 bad input, 3 a refusal (nothing fits, or too little is known),
6 the run store, 130 stopped.
"""


def register(app: typer.Typer) -> None:
    """Make this the command without a subcommand."""
    app.callback(invoke_without_command=True, help=HELP)(allocate)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"teamalloc {version('teamalloc')}")
        raise typer.Exit


def allocate(
    context: typer.Context,
    budget: Annotated[
        float | None, typer.Option(metavar="USD", help="US dollars for everything asked.")
    ] = None,
    max_latency: Annotated[
        str | None, typer.Option(metavar="TIME", help="Deadline: 90s, 30m, 8h, 1h30m, 7d.")
    ] = None,
    tasks: Annotated[int, typer.Option(metavar="N", help="Tasks the limits are for.")] = 1,
    parallel: Annotated[int, typer.Option(metavar="K", help="Tasks run at the same time.")] = 1,
    confidence: Annotated[
        float, typer.Option(metavar="P", help="Probability with which each limit must hold.")
    ] = 0.9,
    lead: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL[@EFFORT]", help="May lead, besides models you have run."),
    ] = None,
    helper: Annotated[
        list[str] | None,
        typer.Option(metavar="MODEL[@EFFORT]", help="May help, besides models you have run."),
    ] = None,
    max_planners: Annotated[int, typer.Option(metavar="N", help="At most 16.")] = 16,
    max_implementers: Annotated[int, typer.Option(metavar="N", help="At most 4.")] = 4,
    max_verifiers: Annotated[int, typer.Option(metavar="N", help="At most 4.")] = 4,
    all_counts: Annotated[
        bool, typer.Option("--all-counts", help="Every number of helpers, not only the usual ones.")
    ] = False,
    like: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Learn only from runs with this tag."),
    ] = None,
    price_date: Annotated[
        str | None, typer.Option(metavar="DATE", help="Use the prices of this day.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Of everything random.")] = 0,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the plan to execute (JSON).")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a full report: FILE.md or FILE.json.")
    ] = None,
    prices: Prices = None,
    store: Store = None,
    as_json: AsJson = False,
    _show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Answer, or hand on to the subcommand."""
    if context.invoked_subcommand is not None:
        return
    gc.disable()  # a short life: looking for garbage during the imports costs a tenth of it
    if budget is None and max_latency is None:
        typer.echo(context.get_help())
        raise BadInput(
            "no limit was given.", remedy="For example: allocate --budget 50 --max-latency 30m."
        )
    _check_file(report, (".md", ".json"))
    question = _question(
        budget, max_latency, (tasks, parallel), confidence, seed, lead or [], helper or [],
        (max_planners, max_implementers, max_verifiers), all_counts, like or [], price_date,
    )  # fmt: skip
    found = _ask(question, prices, store)
    if report is not None:
        write_file(report, [_render(found, report.suffix, full=True)])
    feasible = found.recommendation.verdict != "infeasible"
    if save is not None and feasible:
        write_file(save, [_plan(found)])
    sys.stdout.write(_render(found, ".json" if as_json else ".txt", full=False))
    if not feasible:
        raise typer.Exit(Infeasible.exit_code)


def _question(
    budget: float | None,
    max_latency: str | None,
    batch: tuple[int, int],
    confidence: float,
    seed: int,
    leads: list[str],
    helpers: list[str],
    caps: tuple[int, int, int],
    all_counts: bool,
    like: list[str],
    price_date: str | None,
) -> Question:
    from teamalloc.allocator.answer import Question
    from teamalloc.allocator.problem import Problem
    from teamalloc.data.durations import parse_duration_s

    problem = Problem(
        budget_usd=budget,
        latency_s=None if max_latency is None else parse_duration_s(max_latency),
        confidence=confidence,
        n_tasks=batch[0],
        n_parallel=batch[1],
        seed=seed,
    )
    return Question(
        problem=problem,
        leads=tuple(leads),
        helpers=tuple(helpers),
        max_planners=caps[0],
        max_implementers=caps[1],
        max_verifiers=caps[2],
        all_counts=all_counts,
        like=tuple(parse_tag(tag) for tag in like),
        price_date=None if price_date is None else parse_day(price_date),
    )


def _ask(question: Question, prices: Path | None, url: str | None) -> Answer:
    from teamalloc.allocator.answer import answer
    from teamalloc.data.prices import PriceBook

    book = PriceBook.load(prices)
    with existing_store(url) as store:
        return answer(question, store=store, prices=book, today=today())


def _render(found: Answer, suffix: str, *, full: bool) -> str:
    from teamalloc.reports.renderers import renderers
    from teamalloc.reports.sections import full_report, short_answer

    renderer = next(r for r in renderers().values() if r.suffix == suffix)
    return renderer.render(full_report(found) if full else short_answer(found))


def _plan(found: Answer) -> str:
    from teamalloc.allocator.to_plan import to_plan
    from teamalloc.data.records import encode_plan

    return encode_plan(to_plan(found)).decode() + "\n"


def _check_file(path: Path | None, suffixes: tuple[str, ...]) -> None:
    if path is not None and path.suffix not in suffixes:
        raise BadInput(
            f"{path}: cannot tell the form.", remedy=f"End the name in {' or '.join(suffixes)}."
        )
