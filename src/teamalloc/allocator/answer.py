"""From a question and a run store to an answer with its evidence: what ``allocate`` does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from importlib.metadata import version

import numpy as np

from teamalloc.allocator.candidates import Candidates, candidates
from teamalloc.allocator.problem import Problem
from teamalloc.allocator.recommend import Recommendation, knows_cost, knows_latency, recommend
from teamalloc.allocator.space import MOST_OTHERS, MOST_PLANNERS, SearchSpace
from teamalloc.allocator.tables import decode_table, encode_table, predict_grid, table_key
from teamalloc.data.evidence import load_evidence
from teamalloc.data.prices import PriceBook
from teamalloc.data.store import RunStore
from teamalloc.data.team import TeamConfig, parse_team
from teamalloc.errors import NotEnoughRuns
from teamalloc.models.curve import Prediction
from teamalloc.models.families import Target
from teamalloc.models.fit import CONTRADICTION
from teamalloc.models.forecast import Forecaster
from teamalloc.models.keep import Tag, fitted, keep_body

FEW_RUNS = 10


@dataclass(frozen=True, slots=True)
class Question:
    """Everything a user can ask with."""

    problem: Problem
    leads: tuple[str, ...] = ()
    "``model@effort`` words that may lead besides those that were run"
    helpers: tuple[str, ...] = ()
    "the same for helpers"
    max_planners: int = MOST_PLANNERS
    max_implementers: int = MOST_OTHERS
    max_verifiers: int = MOST_OTHERS
    all_counts: bool = False
    "every number of helpers, not only the usual ones"
    like: tuple[Tag, ...] = ()
    "learn only from runs with these tags"
    price_date: date | None = None
    "None = today"


@dataclass(frozen=True, slots=True)
class EvidenceUsed:
    """What stands behind an answer."""

    n_runs: int
    "own runs in the store (with the tags asked for)"
    n_usable: int
    "own runs that reach a fit"
    n_tasks: int
    "distinct tasks among them"
    n_teams: int
    "distinct teams among them"
    n_rewards: int
    "runs with a reward"
    n_costs: int
    "runs with a cost or tokens"
    n_latencies: int
    "runs with a time"
    n_assigned: int
    "rewarded runs whose team was set by an experiment or the harness; others were only observed"
    left_out: tuple[tuple[str, int], ...]
    "why runs teach less than they hold: (reason, runs)"
    span: tuple[str, str] | None
    "first and last day of the runs"
    published: tuple[str, ...]
    "citations of the published figures used as a prior"


@dataclass(frozen=True, slots=True)
class Answer:
    """A recommendation with all that a colleague needs to check it."""

    question: Question
    recommendation: Recommendation
    evidence: EvidenceUsed
    warnings: tuple[str, ...]
    "what to know before acting on it, in words"
    prices_on: date
    "day of the prices"
    prices_digest: str
    versions: tuple[tuple[str, str], ...]
    "of teamalloc and of the libraries whose data or numerics go into the answer"
    forecaster: Forecaster
    "the curves it came from"


def answer(question: Question, *, store: RunStore | None, prices: PriceBook, today: date) -> Answer:
    """Answer a question.

    Args:
        question: what is asked.
        store: the user's runs; None = there are none.
        prices: of today and of the past.
        today: the day whose prices count, unless the question names another.

    Raises:
        NotEnoughRuns: a limit, or a model, is asked for of which there is no data at all.
    """
    forecaster = fitted(
        store,
        prices=prices,
        on=question.price_date or today,
        like=question.like,
        more_models=sorted({*question.leads, *question.helpers}),
        seed=question.problem.seed,
        keep=question.price_date is None,
    )
    teams = [(parse_team(record.team), record.n_runs) for record in forecaster.records]
    found = candidates(
        forecaster.models.who,
        teams,
        leads=question.leads,
        helpers=question.helpers,
        strength={who: row.reward for who, row in load_evidence().solo.items()},
    )
    affordable, unpriced = _with_cost(found, forecaster, teams)
    _check_limits(question.problem, forecaster)
    space = SearchSpace.of(
        affordable.leads,
        affordable.helpers,
        max_planners=question.max_planners,
        max_implementers=question.max_implementers,
        max_verifiers=question.max_verifiers,
        all_counts=question.all_counts,
    )
    forecast = _grid(forecaster, space, store if question.price_date is None else None)
    recommendation = recommend(question.problem, forecaster, space=space, forecast=forecast)
    used = _evidence_used(forecaster)
    return Answer(
        question=question,
        recommendation=recommendation,
        evidence=used,
        warnings=tuple(_warnings(recommendation, used, affordable, unpriced, forecaster)),
        prices_on=forecaster.price_date,
        prices_digest=prices.digest,
        versions=(
            ("teamalloc", version("teamalloc")),
            ("genai-prices", version("genai-prices")),
            ("numpy", np.__version__),
        ),
        forecaster=forecaster,
    )


def _with_cost(
    found: Candidates, forecaster: Forecaster, teams: Sequence[tuple[TeamConfig, int]]
) -> tuple[Candidates, tuple[str, ...]]:
    """The candidates whose cost can be forecast, and the others.

    A model without a price can still be forecast where runs with it state what they cost in all.
    """
    totals = {r.team for r in forecaster.records if r.cost_usd is not None}
    paid = {seat.who for team, _ in teams if str(team) in totals for seat in team.seats}
    models = forecaster.models
    known = {
        who
        for who, usd in zip(models.who, forecaster.usd_per_token, strict=True)
        if not np.isnan(usd) or who in paid
    }
    unknown = tuple(sorted({*found.leads, *found.helpers} - known))
    leads = tuple(who for who in found.leads if who in known)
    if not leads:
        raise NotEnoughRuns(
            f"no price is known for {', '.join(unknown)}: models with a known cost",
            have=0,
            need=1,
            remedy="Give prices in a price file (allocate ingest --help), or log what runs cost.",
        )
    helpers = tuple(who for who in found.helpers if who in known)
    return replace(found, leads=leads, helpers=helpers), unknown


def _check_limits(problem: Problem, forecaster: Forecaster) -> None:
    if problem.latency_s is not None and not knows_latency(forecaster):
        raise NotEnoughRuns(
            "a latency limit needs runs that log their time: runs with a time",
            have=0,
            need=1,
            remedy="Ingest logs with times, or ask without --max-latency.",
        )
    if problem.budget_usd is not None and not knows_cost(forecaster):
        raise NotEnoughRuns(
            "a budget needs runs that log tokens or dollars: runs with a cost",
            have=0,
            need=1,
            remedy="Ingest logs with usage, or ask without --budget.",
        )


def _grid(
    forecaster: Forecaster, space: SearchSpace, store: RunStore | None
) -> Mapping[Target, Prediction]:
    """Predictions for the whole grid, from the store if it has them."""
    if store is None:
        return predict_grid(forecaster, space)
    key = table_key(forecaster, space)
    body = store.fit(key)
    if body is not None:
        return decode_table(body)
    forecast = predict_grid(forecaster, space)
    keep_body(store, key, encode_table(forecast))
    return forecast


def _evidence_used(forecaster: Forecaster) -> EvidenceUsed:
    evidence = load_evidence()
    curves = forecaster.curves
    citations = {evidence.solo_citation, *(figure.citation for figure in evidence.figures)}
    return EvidenceUsed(
        n_runs=forecaster.n_runs,
        n_usable=forecaster.n_usable,
        n_tasks=forecaster.n_tasks,
        n_teams=len(forecaster.records),
        n_rewards=curves["reward"].support.n_runs,
        n_costs=curves["cost"].support.n_runs,
        n_latencies=curves["latency"].support.n_runs,
        n_assigned=curves["reward"].support.n_assigned,
        left_out=forecaster.left_out,
        span=forecaster.span,
        published=tuple(sorted(citations)),
    )


def _warnings(
    found: Recommendation,
    used: EvidenceUsed,
    chosen: Candidates,
    unpriced: Sequence[str],
    forecaster: Forecaster,
) -> Iterator[str]:
    if used.n_usable == 0:
        yield (
            "published figures only: ingest your own logs to do better "
            "(allocate ingest ~/.claude ~/.codex), then grade some runs (allocate reward)"
        )
    elif used.n_rewards == 0:
        yield "no run has a reward: what a team earns is the published prior (allocate reward RUN 0.8)"
    elif used.n_rewards < FEW_RUNS:
        yield f"only {used.n_rewards} runs have a reward: what a team earns is mostly the published prior"
    if used.n_usable > 0 and used.n_assigned < used.n_rewards:
        yield (
            f"in {used.n_rewards - used.n_assigned} of {used.n_rewards} graded runs the team was only "
            "observed, not assigned: harder tasks may have had bigger teams"
        )
    if found.best.extrapolated and used.n_usable:
        yield "the team lies beyond what was seen: try it on a few tasks first"
    unit = forecaster.curves["cost"].unit_runs
    if unit > 1:
        yield (
            f"the logs hold means of {unit:.0f} runs or more, which do not tell how single runs scatter: "
            f"limits are judged for the mean of {unit:.0f} runs"
        )
    for reason, n in used.left_out:
        if reason == CONTRADICTION:
            yield f"in {n} runs {reason}"
    if unpriced:
        yield f"left out, because no price is known for it: {', '.join(unpriced)}"
    if chosen.dropped:
        yield f"left out as helpers, to keep the search small: {', '.join(chosen.dropped)}"
