"""From runs and a family to the rows of a regression, one builder for each target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from teamalloc.data.evidence import PriorTable
from teamalloc.models.encode import Floats, Ints, TeamColumns, encode
from teamalloc.models.families import Family, Models, Prior, Target
from teamalloc.models.links import Total, add_parts
from teamalloc.models.mixed import Linearise, Rows, Scales
from teamalloc.models.samples import Samples

MAX_TEAM_EFFECTS = 60
HELPERS_ALIKE = 0.15
"part of the variance of helpers' tokens that does not shrink with their number"

GRADED, PASS_FAIL, MEANS = 0, 1, 2
LEAD, HELPERS, TOTAL = 0, 1, 2


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """Everything ``fit_mixed`` needs for one target."""

    prior: Prior
    "of the family; with own runs the published level is only a start, as it says little of theirs"
    rows: Rows
    run: Ints
    "(rows,) which run of the samples each row comes from"
    linearise: Callable[[Ints], Linearise]
    "the curve for a choice of rows"
    scales: Scales
    link: Literal["log", "logit"]
    teams: tuple[str, ...]
    "teams with an effect of their own"

    def take(self, keep: Ints) -> tuple[Rows, Linearise]:
        """The rows with these indices, and the curve for them."""
        rows = Rows(*(getattr(self.rows, name)[keep] for name in Rows.__slots__))
        return rows, self.linearise(keep)


@dataclass(frozen=True, slots=True, eq=False)
class Money:
    """Prices of an average token of each model."""

    today: Floats
    "(k,) US dollars on the day the forecast is for; nan = none"
    then: Floats
    "(runs, k) US dollars on the day of each run; nan = none"


def observe(
    target: Target,
    samples: Samples,
    family: Family,
    models: Models,
    published: PriorTable,
    money: Money,
) -> Observed:
    """Rows of one target.

    Args:
        published: the prior table of the target, for the first guesses of the scales.
        money: token prices (cost only).
    """
    columns = encode([samples.teams[i] for i in samples.team], models.who)
    if target == "reward":
        return _observe_reward(samples, columns, family, models, published)
    if target == "cost":
        return _observe_cost(samples, columns, family, models, published, money)
    return _observe_latency(samples, columns, family, models, published)


def stage_spread(published_lead: float, published_helper: float, count: Ints) -> Floats:
    """(n, 4): sd of log tokens of the lead and of each stage."""
    alike = np.sqrt(HELPERS_ALIKE + (1.0 - HELPERS_ALIKE) / np.maximum(count, 1))
    lead = np.full((len(count), 1), published_lead)
    return np.hstack([lead, published_helper * alike])


def log_part_price(teams: TeamColumns, usd_per_token: Floats) -> Floats:
    """(n, 4): log price of a token of the lead and of each stage; ``usd_per_token`` is (k,) or (n, k)."""
    each = np.broadcast_to(usd_per_token, (len(teams), usd_per_token.shape[-1]))
    lead = each[np.arange(len(teams)), teams.lead]
    stages = np.einsum("nsk,nk->ns", teams.share, each)
    each_part = np.hstack([lead[:, None], np.where(teams.count > 0, stages, 1.0)])
    return np.asarray(np.log(each_part), dtype=float)


def cost_total(
    theta: Floats,
    teams: TeamColumns,
    family: Family,
    models: Models,
    usd_per_token: Floats,
    spread: Floats,
) -> Total:
    """Log dollars of a run before task and team effects."""
    parts = family.components(theta, teams, models)
    return add_parts(parts, log_part_price(teams, usd_per_token), spread)


def latency_total(theta: Floats, teams: TeamColumns, family: Family, models: Models) -> Total:
    """Log seconds of a run before task and team effects."""
    parts = family.components(theta, teams, models)
    none = np.zeros(parts.log.shape)
    return add_parts(parts, none, none)


def target_total(
    family: Family,
    theta: Floats,
    teams: TeamColumns,
    models: Models,
    *,
    noise: Floats,
    usd_per_token: Floats,
) -> Total:
    """Any target before task and team effects: logit of reward, log dollars, log seconds.

    Args:
        noise: (groups,) of the fit; the spread of the roles' tokens (cost only).
        usd_per_token: (k,) or (n, k); nan = no price (cost only).
    """
    if family.target == "reward":
        parts = family.components(theta, teams, models)
        return Total(parts.log[:, 0], parts.design[:, 0], np.zeros(len(teams)))
    if family.target == "latency":
        return latency_total(theta, teams, family, models)
    spread = stage_spread(float(noise[LEAD]), float(noise[HELPERS]), teams.count)
    return cost_total(theta, teams, family, models, usd_per_token, spread)


def _team_effects(samples: Samples, run: Ints) -> tuple[Ints, tuple[str, ...]]:
    """Index of each row's team among those run often enough to have an effect of their own."""
    weight = np.bincount(
        samples.team[np.unique(run)], samples.n_runs[np.unique(run)], minlength=len(samples.teams)
    )
    order = np.argsort(-weight, kind="stable")[:MAX_TEAM_EFFECTS]
    chosen = [int(t) for t in order if weight[t] >= 2]
    index = np.full(len(samples.teams), -1, dtype=np.int64)
    index[chosen] = np.arange(len(chosen))
    return index[samples.team[run]], tuple(str(samples.teams[t]) for t in chosen)


def _prior(family: Family, models: Models, published: PriorTable, run: Ints) -> Prior:
    prior = family.prior(models)
    if len(run) == 0 or "level_unknown" not in published:
        return prior
    return replace(prior, sd=np.where(prior.is_level, published["level_unknown"][1], prior.sd))


def _rows(
    samples: Samples, run: Ints, y: Floats, group: Ints, factor: Floats
) -> tuple[Rows, tuple[str, ...]]:
    team, names = _team_effects(samples, run)
    return Rows(y, samples.task[run], team, group, factor), names


def _observe_reward(
    samples: Samples, columns: TeamColumns, family: Family, models: Models, published: PriorTable
) -> Observed:
    run = np.flatnonzero(~np.isnan(samples.reward))
    single = samples.n_runs[run] == 1
    group = np.where(single, np.where(samples.pass_fail[run], PASS_FAIL, GRADED), MEANS)
    rows, teams = _rows(samples, run, samples.reward[run], group, 1.0 / samples.n_runs[run])

    def linearise(keep: Ints) -> Linearise:
        chosen = columns.take(run[keep])

        def at(theta: Floats) -> tuple[Floats, Floats]:
            parts = family.components(theta, chosen, models)
            return parts.log[:, 0], parts.design[:, 0]

        return at

    scales = Scales(
        tau=1.0,
        task=published["task"][0],
        team=published["team"][0],
        noise=np.array([published["noise"][0], 1.0, published["noise_of_means"][0]]),
        fixed_noise=(PASS_FAIL, MEANS),
    )
    prior = _prior(family, models, published, run)
    return Observed(prior, rows, run, linearise, scales, "logit", teams)


def _observe_latency(
    samples: Samples, columns: TeamColumns, family: Family, models: Models, published: PriorTable
) -> Observed:
    run = np.flatnonzero(~np.isnan(samples.active_s))
    y = _log_of_typical(samples.active_s[run], samples.n_runs[run], published)
    rows, teams = _rows(
        samples, run, y, np.zeros(len(run), dtype=np.int64), 1.0 / samples.n_runs[run]
    )

    def linearise(keep: Ints) -> Linearise:
        chosen = columns.take(run[keep])

        def at(theta: Floats) -> tuple[Floats, Floats]:
            total = latency_total(theta, chosen, family, models)
            return total.log, total.gradient

        return at

    prior, scales = _prior(family, models, published, run), _log_scales(published, ("noise_total",))
    return Observed(prior, rows, run, linearise, scales, "log", teams)


def _observe_cost(
    samples: Samples,
    columns: TeamColumns,
    family: Family,
    models: Models,
    published: PriorTable,
    money: Money,
) -> Observed:
    """Log tokens of each role where they are known, else log dollars of the whole run."""
    members = np.concatenate([np.eye(models.n)[columns.lead][:, None], columns.share], axis=1)
    all_priced = ~((members.sum(1) > 0) & ~models.priced).any(1)
    by_role = ~np.isnan(samples.tokens[:, 0]) & all_priced & (samples.n_runs == 1)
    by_total = ~np.isnan(samples.cost_usd) & ~by_role
    has_part = np.column_stack([np.ones(len(samples), dtype=bool), columns.count > 0])
    role_run, role_part = np.nonzero(has_part & by_role[:, None])
    total_run = np.flatnonzero(by_total)
    run = np.concatenate([role_run, total_run])
    part = np.concatenate([role_part, np.full(len(total_run), -1)])
    y = np.concatenate(
        [
            np.log(samples.tokens[role_run, role_part]),
            _log_of_typical(samples.cost_usd[total_run], samples.n_runs[total_run], published),
        ]
    )
    group = np.where(part < 0, TOTAL, np.where(part == 0, LEAD, HELPERS))
    n_agents = np.column_stack([np.ones(len(samples)), np.maximum(columns.count, 1)])
    of_helpers = HELPERS_ALIKE + (1.0 - HELPERS_ALIKE) / n_agents[run, np.maximum(part, 0)]
    factor = np.where(group == HELPERS, of_helpers, 1.0) / samples.n_runs[run]
    rows, teams = _rows(samples, run, y, group, factor)
    spread = stage_spread(published["noise_lead"][0], published["noise_helper"][0], columns.count)
    prices = stand_in_prices(money.then)

    def linearise(keep: Ints) -> Linearise:
        chosen, which = columns.take(run[keep]), part[keep]
        in_usd = np.flatnonzero(which < 0)
        of_total = chosen.take(in_usd)
        usd, sd = prices[run[keep]][in_usd], spread[run[keep]][in_usd]
        row = np.arange(len(keep))

        def at(theta: Floats) -> tuple[Floats, Floats]:
            parts = family.components(theta, chosen, models)
            f, gradient = parts.log[row, which], parts.design[row, which]
            if len(in_usd):
                total = cost_total(theta, of_total, family, models, usd, sd)
                f[in_usd], gradient[in_usd] = total.log, total.gradient
            return f, gradient

        return at

    scales = _log_scales(published, ("noise_lead", "noise_helper", "noise_total"))
    prior = _prior(family, models, published, run)
    return Observed(prior, rows, run, linearise, scales, "log", teams)


def stand_in_prices(usd_per_token: Floats) -> Floats:
    """Prices with a typical one where none is known: there the model's own term finds the rest."""
    known = usd_per_token[~np.isnan(usd_per_token)]
    typical = float(np.exp(np.log(known).mean())) if len(known) else 1e-6
    return np.where(np.isnan(usd_per_token), typical, usd_per_token)


def _log_of_typical(mean: Floats, n_runs: Floats, published: PriorTable) -> Floats:
    """Log of a typical run behind a mean: a mean of n log-normal runs lies above their median."""
    variance = published["task"][0] ** 2 + published["noise_total"][0] ** 2
    return np.log(mean) - 0.5 * variance * (1.0 - 1.0 / n_runs)


def _log_scales(published: PriorTable, noise: tuple[str, ...]) -> Scales:
    return Scales(
        tau=1.0,
        task=published["task"][0],
        team=published["team"][0],
        noise=np.array([published[name][0] for name in noise]),
    )
