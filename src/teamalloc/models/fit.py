"""Fit the three curves to runs, with the published figures as a prior.

    forecaster = fit_forecaster(store.runs(), prices=PriceBook.load(), on=date.today())

Each target is one call of ``fit_mixed``; then the same fit is repeated without a fifth of the
tasks at a time, and how far the left-out runs lie from their forecast corrects the normal
quantiles (a split conformal factor, shrunk to 1 where runs are few).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np

from teamalloc.data.evidence import Evidence, load_evidence
from teamalloc.data.prices import PriceBook
from teamalloc.data.run import Run
from teamalloc.data.team import STAGES, TeamConfig, parse_who
from teamalloc.errors import NotEnoughRuns
from teamalloc.models.curve import Curve, Support
from teamalloc.models.encode import Floats, Ints, encode
from teamalloc.models.families import Family, Models, Target, families
from teamalloc.models.forecast import Forecaster, TeamRecord
from teamalloc.models.holdout import Fold, conformal, hold_out
from teamalloc.models.mixed import Posterior, fit_mixed
from teamalloc.models.observe import (
    LEAD,
    Money,
    Observed,
    log_part_price,
    observe,
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
CONFORMAL_LEVEL = 0.9
PRICE_LAW = 1.25
CONTRADICTION = "tokens x list price is not what they cost: forecasts follow the logged cost"


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
    bench = Workbench.of(runs, prices=prices, on=on, evidence=evidence, more_models=more_models)
    samples = bench.samples
    return Forecaster(
        digest=digest
        or hashlib.sha256("".join(sorted(r.run_id for r in runs)).encode()).hexdigest(),
        models=bench.models,
        curves={target: bench.curve(target, seed) for target in DEFAULT_FAMILIES},
        published=evidence.prior,
        tariff=bench.tariff,
        usd_per_token=bench.money.today,
        price_date=on,
        n_runs=sum(run.n_runs for run in runs),
        n_usable=int(samples.n_runs.sum()),
        n_tasks=samples.n_tasks,
        records=_records(samples),
        left_out=samples.left_out,
        span=_span(runs),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """One target, fitted."""

    family: Family
    observed: Observed
    posterior: Posterior


@dataclass(frozen=True, slots=True, eq=False)
class Workbench:
    """All that the fits of the three targets work on."""

    samples: Samples
    models: Models
    tariff: Tariff
    money: Money
    evidence: Evidence

    @classmethod
    def of(
        cls,
        runs: Sequence[Run],
        *,
        prices: PriceBook,
        on: date,
        evidence: Evidence,
        more_models: Sequence[str] = (),
    ) -> Workbench:
        """Runs as columns, their models, and what tokens cost then and on a day."""
        samples = to_samples(runs)
        who = models_to_fit(samples.teams, more_models, evidence)
        first = cls._laid_out(runs, samples, who, {}, prices=prices, on=on, evidence=evidence)
        if np.isnan(samples.cost_usd).all():
            return first
        if (n := first.n_contradicting()) > 0:
            samples = replace(samples, left_out=(*samples.left_out, (CONTRADICTION, n)))
            first = replace(
                first, models=replace(first.models, priced=np.zeros(len(who), dtype=bool))
            )
        if first.models.priced.all():
            return first
        implied = first.implied_usd()
        return cls._laid_out(runs, samples, who, implied, prices=prices, on=on, evidence=evidence)

    def n_contradicting(self) -> int:
        """Runs with tokens and a cost, if tokens times list price is not what they cost; else 0.

        List prices reproduce real costs within 13 % (``evidence.toml``, "price-law"); a median further
        off than ``PRICE_LAW`` says that these tokens were not billed at these prices.
        """
        samples = self.samples
        columns = encode([samples.teams[i] for i in samples.team], self.models.who)
        usd = np.nansum(samples.tokens * np.exp(log_part_price(columns, self.money.then)), axis=1)
        known = ~np.isnan(samples.tokens[:, 0]) & ~np.isnan(samples.cost_usd) & (usd > 0)
        if not known.any():
            return 0
        off = np.median(np.log(samples.cost_usd[known] / usd[known]))
        return int(known.sum()) if abs(off) > np.log(PRICE_LAW) else 0

    @classmethod
    def _laid_out(
        cls,
        runs: Sequence[Run],
        samples: Samples,
        who: Sequence[str],
        implied_usd: dict[str, float],
        *,
        prices: PriceBook,
        on: date,
        evidence: Evidence,
    ) -> Workbench:
        models = _describe(who, implied_usd, evidence, prices, on)
        tariff = learn_tariff(runs, evidence, implied_usd=implied_usd)
        money = Money(
            today=tariff.usd_per_token(models.who, prices, on=on),
            then=_prices_then(samples, tariff, models, prices, on),
        )
        return cls(samples, models, tariff, money, evidence)

    def implied_usd(self) -> dict[str, float]:
        """US dollars for an average token of each model without a price, as total costs imply.

        A first cost fit takes one typical price for all of them; by how much each model's own term
        departs from it is what sets its price, and with it its likely strength, apart.
        """
        paid = ~np.isnan(self.samples.cost_usd)
        seen = {
            s.model for t in np.unique(self.samples.team[paid]) for s in self.samples.teams[t].seats
        }
        theta = self.fit("cost").posterior.theta
        typical = stand_in_prices(self.money.today)
        found: dict[str, float] = {}
        for k, who in enumerate(self.models.who):
            model = parse_who(who)[0]
            if not self.models.priced[k] and model in seen:
                found.setdefault(model, float(typical[k] * np.exp(theta[1 + k])))
        return found

    def fit(self, target: Target) -> Fitted:
        """The posterior of one target."""
        family = families(self.evidence.prior)[DEFAULT_FAMILIES[target]]
        published = self.evidence.prior[target]
        observed = observe(target, self.samples, family, self.models, published, self.money)
        rows, linearise = observed.take(np.arange(len(observed.run)))
        posterior = fit_mixed(
            linearise, rows, observed.prior, observed.scales,
            link=observed.link, n_teams=len(observed.teams),
        )  # fmt: skip
        return Fitted(family, observed, posterior)

    def curve(self, target: Target, seed: int) -> Curve:
        """One target as a curve, its quantiles corrected on held-out tasks."""
        fitted = self.fit(target)
        observed, posterior = fitted.observed, fitted.posterior
        upper, lower = 1.0, 1.0
        if target != "reward":
            fold = Fold(self.samples, "task", seed)
            out = hold_out(fold, observed, fitted.family, self.models, posterior, self.money)
            z = (out.actual - out.mean) / out.sd
            upper, lower = conformal(z, CONFORMAL_LEVEL), conformal(-z, CONFORMAL_LEVEL)
        runs = np.unique(observed.run)
        n_each = self.samples.n_runs[runs]
        means_only = target != "reward" and len(runs) > 0 and bool(np.all(n_each > 1))
        return Curve(
            family=fitted.family.name,
            target=target,
            names=observed.prior.names,
            theta=posterior.theta,
            team_effect=posterior.team_effect,
            cov=posterior.cov,
            teams=observed.teams,
            s_task=posterior.scales.task,
            s_team=posterior.scales.team,
            noise=posterior.scales.noise,
            noise_is_by_role=bool(np.any(observed.rows.group == LEAD)) or len(runs) == 0,
            tau=posterior.scales.tau,
            upper=upper,
            lower=lower,
            unit_runs=float(n_each.min()) if means_only else 1.0,
            support=_support(self.samples, runs),
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


def _describe(
    who: Sequence[str],
    implied_usd: dict[str, float],
    evidence: Evidence,
    prices: PriceBook,
    on: date,
) -> Models:
    output = {}
    for model in sorted({parse_who(word)[0] for word in who}):
        rates = prices.rates(model, on=on)
        output[model] = None if rates is None else float(rates.output)
    return describe_models(
        who, evidence=evidence, output_usd_per_mtok=output, implied_usd=implied_usd
    )


def _prices_then(
    samples: Samples, tariff: Tariff, models: Models, prices: PriceBook, on: date
) -> Floats:
    """(runs, k) US dollars for an average token on the day of each run (undated: of the forecast)."""
    days = [run.started_at.date() if run.started_at else on for run in samples.runs]
    by_day = {day: tariff.usd_per_token(models.who, prices, on=day) for day in sorted(set(days))}
    return np.array([by_day[day] for day in days]).reshape(len(samples), models.n)


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
