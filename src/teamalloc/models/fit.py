"""Fit the three curves to runs, with the published figures as a prior.

    forecaster = fit_forecaster(store.runs(), prices=PriceBook.load(), on=date.today())

Each target is one call of ``fit_mixed``; then the same fit is repeated without a fifth of the
tasks at a time, and how far the left-out runs lie from their forecast corrects the normal
quantiles (a split conformal factor, shrunk to 1 where runs are few).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from datetime import date

import numpy as np

from teamalloc.data.evidence import Evidence, load_evidence
from teamalloc.data.prices import PriceBook
from teamalloc.data.run import Run
from teamalloc.data.team import STAGES, TeamConfig, parse_who
from teamalloc.errors import NotEnoughRuns
from teamalloc.models.curve import Curve, Support
from teamalloc.models.encode import Floats, Ints, TeamColumns, encode
from teamalloc.models.families import Family, Models, Target, families
from teamalloc.models.forecast import Forecaster, TeamRecord
from teamalloc.models.links import Total
from teamalloc.models.mixed import Posterior, fit_mixed
from teamalloc.models.observe import (
    LEAD,
    Money,
    Observed,
    cost_total,
    latency_total,
    observe,
    stage_spread,
    stand_in_prices,
)
from teamalloc.models.samples import Samples, to_samples
from teamalloc.models.tariff import Tariff, learn_tariff
from teamalloc.models.tiers import describe_models

DEFAULT_FAMILIES: dict[Target, str] = {
    "reward": "saturating",
    "cost": "role_tokens",
    "latency": "critical_path",
}
N_FOLDS = 5
CONFORMAL_LEVEL = 0.9
CONFORMAL_WEIGHT = 30.0
"runs' worth of the normal quantile that the conformal factor is shrunk to"


def fit_forecaster(
    runs: Sequence[Run],
    *,
    prices: PriceBook,
    on: date,
    more_models: Sequence[str] = (),
    evidence: Evidence | None = None,
    seed: int = 0,
    digest: str = "",
) -> Forecaster:
    """Fit reward, cost and latency.

    Args:
        runs: the user's own; none leaves the published figures.
        prices: for the forecast.
        on: day whose prices the forecast uses.
        more_models: ``model@effort`` words to know besides those in the runs.
        evidence: published figures; None = those shipped.
        seed: of the folds.
        digest: key of what it is fitted from; "" = of the runs alone.

    Raises:
        NotEnoughRuns: a model was asked for of which neither runs nor published rows exist.
    """
    evidence = evidence or load_evidence()
    samples = to_samples(runs)
    who = models_to_fit(samples.teams, more_models, evidence)
    tariff = learn_tariff(runs, evidence)
    models = _describe(who, evidence, prices, on)
    money = Money(
        today=tariff.usd_per_token(models.who, prices, on=on),
        then=_prices_then(samples, tariff, models, prices, on),
    )
    table = families(evidence.prior)
    curves = {
        target: _fit_curve(target, samples, table[name], models, evidence, money, seed)
        for target, name in DEFAULT_FAMILIES.items()
    }
    return Forecaster(
        digest=digest
        or hashlib.sha256("".join(sorted(r.run_id for r in runs)).encode()).hexdigest(),
        models=models,
        curves=curves,
        published=evidence.prior,
        tariff=tariff,
        usd_per_token=money.today,
        price_date=on,
        n_runs=sum(run.n_runs for run in runs),
        n_usable=int(samples.n_runs.sum()),
        n_tasks=samples.n_tasks,
        records=_records(samples),
        left_out=samples.left_out,
        span=_span(runs),
    )


def models_to_fit(
    teams: Sequence[TeamConfig], more: Sequence[str], evidence: Evidence
) -> list[str]:
    """``model@effort`` words: those run, those asked for, and the published efforts of each lead.

    The lead thinking longer alone is always an alternative to a team. Where no team was run, the
    models of the study stand in.

    Raises:
        NotEnoughRuns: a model was asked for of which neither runs nor published rows exist.
    """
    asked = set(more) if teams else {*more, *evidence.study_models}
    if not teams:
        _check_published(asked, evidence)
    led = {team.lead.model for team in teams} | {parse_who(who)[0] for who in asked}
    published = {row.who for row in evidence.solo.values() if row.model in led}
    seen = {seat.who for team in teams for seat in team.seats}
    named = {who for who in asked if teams or parse_who(who)[1] is not None}
    return sorted(seen | named | published)


def _check_published(asked: Iterable[str], evidence: Evidence) -> None:
    """Without a single run, a model without published rows would be a pure guess."""
    rows = sorted({row.model for row in evidence.solo.values()})
    for who in sorted(asked):
        if parse_who(who)[0] not in rows:
            raise NotEnoughRuns(
                f"nothing is known of {who}: own runs",
                have=0,
                need=1,
                remedy=f"Ingest logs with it, or ask for one of: {', '.join(rows)}.",
            )


def _describe(who: Sequence[str], evidence: Evidence, prices: PriceBook, on: date) -> Models:
    output = {}
    for model in sorted({parse_who(word)[0] for word in who}):
        rates = prices.rates(model, on=on)
        output[model] = None if rates is None else float(rates.output)
    return describe_models(who, evidence=evidence, output_usd_per_mtok=output)


def _prices_then(
    samples: Samples, tariff: Tariff, models: Models, prices: PriceBook, on: date
) -> Floats:
    """(runs, k) US dollars for an average token on the day of each run (undated: of the forecast)."""
    days = [run.started_at.date() if run.started_at else on for run in samples.runs]
    by_day = {day: tariff.usd_per_token(models.who, prices, on=day) for day in sorted(set(days))}
    return np.array([by_day[day] for day in days]).reshape(len(samples), models.n)


def _fit_curve(
    target: Target,
    samples: Samples,
    family: Family,
    models: Models,
    evidence: Evidence,
    money: Money,
    seed: int,
) -> Curve:
    published = evidence.prior[target]
    observed = observe(target, samples, family, models, published, money)
    prior = family.prior(models)
    everything = np.arange(len(observed.run))
    rows, linearise = observed.take(everything)
    fitted = fit_mixed(
        linearise, rows, prior, observed.scales,
        link=observed.link, n_teams=len(observed.teams),
    )  # fmt: skip
    upper, lower = 1.0, 1.0
    if target != "reward":
        z = held_out(target, samples, family, models, observed, fitted, money, by="task", seed=seed)
        upper, lower = conformal(z, CONFORMAL_LEVEL), conformal(-z, CONFORMAL_LEVEL)
    runs = np.unique(observed.run)
    means_only = len(runs) > 0 and bool(np.all(samples.n_runs[runs] > 1))
    return Curve(
        family=family.name,
        target=target,
        names=prior.names,
        theta=fitted.theta,
        team_effect=fitted.team_effect,
        cov=fitted.cov,
        teams=observed.teams,
        s_task=fitted.scales.task,
        s_team=fitted.scales.team,
        noise=fitted.scales.noise,
        noise_is_by_role=bool(np.any(observed.rows.group == LEAD)) or len(runs) == 0,
        tau=fitted.scales.tau,
        upper=upper,
        lower=lower,
        unit_runs=float(samples.n_runs[runs].min()) if means_only and target != "reward" else 1.0,
        support=_support(samples, runs),
    )


def held_out(
    target: Target,
    samples: Samples,
    family: Family,
    models: Models,
    observed: Observed,
    fitted: Posterior,
    money: Money,
    *,
    by: str,
    seed: int,
) -> Floats:
    """Standardised distance of each run from its forecast by a fit that did not see its task (or team).

    Scales are kept from the full fit; only parameters are fitted again. (n,) for the runs with
    this target, in the order of the samples; dollars and seconds only.
    """
    prior = family.prior(models)
    values = samples.cost_usd if target == "cost" else samples.active_s
    runs = np.flatnonzero(~np.isnan(values))
    fold = fold_of(samples, by=by, seed=seed)
    columns = encode([samples.teams[i] for i in samples.team], models.who)
    z = np.zeros(len(runs))
    for number in np.unique(fold[runs]):
        out = np.flatnonzero(fold[runs] == number)
        keep = np.flatnonzero(fold[observed.run] != number)
        rows, linearise = observed.take(keep)
        part = fit_mixed(
            linearise, rows, prior, fitted.scales,
            link=observed.link, n_teams=len(observed.teams), learn_scales=False, start=fitted,
        )  # fmt: skip
        chosen = runs[out]
        teams = columns.take(chosen)
        total = _total(target, part, teams, chosen, family, models, money)
        effect = np.full(len(samples.teams), -1)
        effect[samples.team[observed.run]] = observed.rows.team
        own = effect[samples.team[chosen]]
        known = own >= 0
        design = np.hstack([total.gradient, np.zeros((len(chosen), len(observed.teams)))])
        design[np.flatnonzero(known), total.gradient.shape[1] + own[known]] = 1.0
        mean = total.log + np.where(
            known, part.team_effect[own] if len(observed.teams) else 0.0, 0.0
        )
        variance = np.einsum("np,np->n", design @ part.cov, design)
        variance += np.where(known, 0.0, part.scales.team**2)
        variance += (part.scales.task**2 + _luck(target, part, total, observed)) / samples.n_runs[
            chosen
        ]
        z[out] = (np.log(values[chosen]) - mean) / np.sqrt(variance)
    return z


def _total(
    target: Target,
    part: Posterior,
    teams: TeamColumns,
    runs: Ints,
    family: Family,
    models: Models,
    money: Money,
) -> Total:
    if target == "latency":
        return latency_total(part.theta, teams, family, models)
    noise = part.scales.noise
    spread = stage_spread(float(noise[0]), float(noise[1]), teams.count)
    return cost_total(part.theta, teams, family, models, stand_in_prices(money.then)[runs], spread)


def _luck(target: Target, part: Posterior, total: Total, observed: Observed) -> Floats | float:
    if target == "cost" and np.any(observed.rows.group == LEAD):
        return total.variance
    return float(part.scales.noise[-1] ** 2)


def fold_of(samples: Samples, *, by: str, seed: int) -> Ints:
    """(n,) fold of each run: whole tasks (or whole teams) go together."""
    unit = samples.task if by == "task" else samples.team
    unit = np.where(unit < 0, unit.max(initial=0) + 1 + np.arange(len(unit)), unit)
    names, index = np.unique(unit, return_inverse=True)
    shuffled = np.random.default_rng(seed).permutation(len(names))
    return shuffled[index] % N_FOLDS


def conformal(z: Floats, level: float) -> float:
    """Factor on the normal quantile so that ``level`` of the held-out runs lie below it."""
    from scipy.special import ndtri

    if len(z) == 0:
        return 1.0
    rank = min(1.0, level * (len(z) + 1) / len(z))
    factor = float(np.quantile(z, rank)) / float(ndtri(level))
    return (len(z) * max(factor, 0.5) + CONFORMAL_WEIGHT) / (len(z) + CONFORMAL_WEIGHT)


def _support(samples: Samples, runs: Ints) -> Support:
    teams = [samples.teams[i] for i in np.unique(samples.team[runs])]
    most = [max((team.n_agents(stage) for team in teams), default=0) for stage in STAGES]
    seen = [tuple(sorted({s.who for t in teams for s in t.stage(stage)})) for stage in STAGES]
    assigned = np.array([run.assigned for run in samples.runs], dtype=bool)[runs]
    return Support(
        n_runs=int(samples.n_runs[runs].sum()),
        n_rows=len(runs),
        n_tasks=len(np.unique(samples.task[runs][samples.task[runs] >= 0])),
        n_teams=len(teams),
        n_assigned=int(samples.n_runs[runs][assigned].sum()),
        leads=tuple(sorted({team.lead.who for team in teams})),
        max_count=(most[0], most[1], most[2]),
        stage_models=(seen[0], seen[1], seen[2]),
    )


def _records(samples: Samples) -> tuple[TeamRecord, ...]:
    def mean(values: Floats, rows: Ints) -> float | None:
        known = rows[~np.isnan(values[rows])]
        return (
            float(np.average(values[known], weights=samples.n_runs[known])) if len(known) else None
        )

    records = []
    for t, team in enumerate(samples.teams):
        rows = np.flatnonzero(samples.team == t)
        records.append(
            TeamRecord(
                team=str(team),
                n_runs=int(samples.n_runs[rows].sum()),
                reward=mean(samples.reward, rows),
                cost_usd=mean(samples.cost_usd, rows),
                active_s=mean(samples.active_s, rows),
            )
        )
    return tuple(records)


def _span(runs: Sequence[Run]) -> tuple[str, str] | None:
    days = sorted(run.started_at.date().isoformat() for run in runs if run.started_at)
    return (days[0], days[-1]) if days else None
