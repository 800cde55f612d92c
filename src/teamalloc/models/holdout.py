"""Forecasts of runs by curves that did not see their task, or their team."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from teamalloc.models.encode import Floats, Ints, encode
from teamalloc.models.families import Family, Models, Target, flattening
from teamalloc.models.links import Total
from teamalloc.models.mixed import Posterior, fit_mixed
from teamalloc.models.normal import normal_quantile
from teamalloc.models.observe import (
    GRADED,
    LEAD,
    PASS_FAIL,
    Money,
    Observed,
    stand_in_prices,
    target_total,
)
from teamalloc.models.samples import Samples

N_FOLDS = 5
CONFORMAL_WEIGHT = 30.0
"runs' worth of the normal quantile that the conformal factor is shrunk to"


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """Runs split so that whole tasks (or whole teams) go together."""

    samples: Samples
    by: Literal["task", "team"]
    seed: int

    def numbers(self) -> Ints:
        """(n,) fold of each run; -1 = never held out: a mean over tasks is no single task."""
        unit = self.samples.task if self.by == "task" else self.samples.team
        names, index = np.unique(unit, return_inverse=True)
        shuffled = np.random.default_rng(self.seed).permutation(len(names))
        return np.where(unit < 0, -1, shuffled[index] % N_FOLDS).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """What was forecast and what came: log US dollars or log seconds, or reward in [0, 1]."""

    run: Ints
    "(n,) of the samples"
    actual: Floats
    "(n,)"
    mean: Floats
    "(n,)"
    sd: Floats
    "(n,) predictive"
    constant: Floats
    "(n,) mean of the runs that the fit saw"


def hold_out(
    fold: Fold, observed: Observed, family: Family, models: Models, fitted: Posterior, money: Money
) -> HeldOut:
    """Forecast every run without its fold.

    The scales are kept from the full fit; only parameters and effects are fitted again.
    """
    samples = fold.samples
    target = family.target
    actual = _actual(target, samples)
    number = fold.numbers()
    runs = np.flatnonzero(~np.isnan(actual) & (number >= 0))
    columns = encode([samples.teams[i] for i in samples.team], models.who)
    effect, usd = _effects(samples, observed), stand_in_prices(money.then)
    mean, sd, constant = np.zeros(len(samples)), np.ones(len(samples)), np.zeros(len(samples))
    for out in np.unique(number[runs]):
        chosen = runs[number[runs] == out]
        rest = runs[number[runs] != out]
        constant[chosen] = actual[rest].mean() if len(rest) else actual[runs].mean()
        rows, linearise = observed.take(np.flatnonzero(number[observed.run] != out))
        part = fit_mixed(
            linearise, rows, observed.prior, fitted.scales,
            link=observed.link, n_teams=len(observed.teams), learn_scales=False, start=fitted,
        )  # fmt: skip
        total = target_total(
            family,
            part.theta,
            columns.take(chosen),
            models,
            noise=part.scales.noise,
            usd_per_token=usd[chosen],
        )
        link_mean, link_variance = _with_effects(part, total, effect[chosen])
        mean[chosen], sd[chosen] = _as_run(
            target, part, total, observed, samples, chosen, link_mean, link_variance
        )
    return HeldOut(runs, actual[runs], mean[runs], sd[runs], constant[runs])


def conformal(z: Floats, level: float) -> float:
    """Factor on the normal quantile so that ``level`` of the held-out runs lie below it.

    Split conformal prediction (Vovk, Gammerman and Shafer 2005) on standardised distances, shrunk
    to 1 where runs are few.
    """
    if len(z) == 0:
        return 1.0
    rank = min(1.0, level * (len(z) + 1) / len(z))
    factor = float(np.quantile(z, rank)) / normal_quantile(level)
    return (len(z) * max(factor, 0.5) + CONFORMAL_WEIGHT) / (len(z) + CONFORMAL_WEIGHT)


def _actual(target: Target, samples: Samples) -> Floats:
    if target == "reward":
        return samples.reward
    return np.asarray(
        np.log(samples.cost_usd if target == "cost" else samples.active_s), dtype=float
    )


def _effects(samples: Samples, observed: Observed) -> Ints:
    """(n,) index of the effect of each run's team, -1 = none."""
    of_team = np.full(len(samples.teams), -1, dtype=np.int64)
    of_team[samples.team[observed.run]] = observed.rows.team
    return of_team[samples.team]


def _with_effects(part: Posterior, total: Total, effect: Ints) -> tuple[Floats, Floats]:
    """Mean and variance on the link scale, team effects included."""
    known = np.flatnonzero(effect >= 0)
    effects = np.zeros((len(effect), len(part.team_effect)))
    effects[known, effect[known]] = 1.0
    design = np.hstack([total.gradient, effects])
    variance = np.einsum("np,np->n", design @ part.cov, design)
    variance += np.where(effect >= 0, 0.0, part.scales.team**2)
    return total.log + effects @ part.team_effect, variance


def _as_run(
    target: Target,
    part: Posterior,
    total: Total,
    observed: Observed,
    samples: Samples,
    runs: Ints,
    link_mean: Floats,
    link_variance: Floats,
) -> tuple[Floats, Floats]:
    """Mean and predictive sd of a single run (or of the mean it stands for)."""
    scales = part.scales
    if target == "reward":
        flat = flattening(scales.task)
        mean = 1.0 / (1.0 + np.exp(-flat * link_mean))
        slope = mean * (1.0 - mean)
        noise = np.where(samples.pass_fail[runs], scales.noise[PASS_FAIL], scales.noise[GRADED])
        single = (slope * flat * scales.task) ** 2 + slope * noise**2
        return mean, np.sqrt((slope * flat) ** 2 * link_variance + single / samples.n_runs[runs])
    by_role = target == "cost" and bool(np.any(observed.rows.group == LEAD))
    luck = total.variance if by_role else scales.noise[-1] ** 2
    single = scales.task**2 + luck
    return link_mean, np.sqrt(link_variance + single / samples.n_runs[runs])
