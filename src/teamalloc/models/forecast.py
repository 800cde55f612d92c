"""Reward, cost and latency of any teams, with both kinds of uncertainty kept apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache

import numpy as np

from teamalloc.data.evidence import PriorTable
from teamalloc.data.prices import PriceBook
from teamalloc.data.team import parse_team
from teamalloc.models.curve import Curve, Prediction
from teamalloc.models.encode import Floats, Ints, TeamColumns, encode
from teamalloc.models.families import Family, Models, Target, families, flattening
from teamalloc.models.links import Total
from teamalloc.models.normal import normal_cdf
from teamalloc.models.observe import GRADED, TOTAL, stand_in_prices, target_total
from teamalloc.models.tariff import Tariff

CHUNK = 4096
"teams predicted at once: their designs then stay in a processor's cache"


@dataclass(frozen=True, slots=True)
class TeamRecord:
    """A team that was run."""

    team: str
    "in one-line form"
    n_runs: int
    "runs (a mean counts for those behind it)"
    reward: float | None
    "mean of its rewards"
    cost_usd: float | None
    "mean of its costs"
    active_s: float | None
    "mean of its times"


@dataclass(frozen=True, slots=True, eq=False)
class Forecaster:
    """The three curves and all that an answer needs besides: prices, models, what was seen."""

    digest: str
    "SHA-256 (hex) of what it was fitted from; the key under which it is stored"
    models: Models
    curves: Mapping[Target, Curve]
    published: Mapping[str, PriorTable]
    "the prior tables, for the parts a curve has not learned"
    tariff: Tariff
    usd_per_token: Floats
    "(k,) on ``price_date``; nan = no price"
    price_date: date
    n_runs: int
    "own runs"
    n_usable: int
    "own runs that reach a fit"
    n_tasks: int
    records: tuple[TeamRecord, ...]
    "teams that were run, most runs first"
    left_out: tuple[tuple[str, int], ...]
    "why runs did not reach a fit: (reason, runs)"
    span: tuple[str, str] | None
    "first and last day of the runs"

    def family(self, target: Target) -> Family:
        """The family of a curve."""
        return families(self.published)[self.curves[target].family]

    def repriced(self, prices: PriceBook, on: date) -> Forecaster:
        """The same curves at another day's prices; nothing is fitted again."""
        return replace(
            self,
            usd_per_token=self.tariff.usd_per_token(self.models.who, prices, on=on),
            price_date=on,
        )

    def predict(self, teams: TeamColumns) -> dict[Target, Prediction]:
        """All three targets for ``n`` teams."""
        chunks = [slice(i, i + CHUNK) for i in range(0, len(teams), CHUNK)]
        return {
            target: _join([self._predict(target, teams.take(chunk)) for chunk in chunks])
            for target in self.curves
        }

    def _predict(self, target: Target, teams: TeamColumns) -> Prediction:
        curve = self.curves[target]
        total = self.total(target, teams)
        center, variance = self._posterior(curve, teams, total)
        beyond = extrapolates(curve, teams, self.models)
        if target == "reward":
            flat = flattening(curve.s_task)
            mean = 1.0 / (1.0 + np.exp(-flat * center))
            slope = mean * (1.0 - mean)
            sd = np.sqrt((slope * flat * curve.s_task) ** 2 + slope * curve.noise[GRADED] ** 2)
            return Prediction(target, mean, slope * flat * np.sqrt(variance), sd, beyond)
        run_sd = np.sqrt(self._run_variance(target, total))
        center = center + self._mean_above_median(curve)
        return Prediction(target, center, np.sqrt(variance), run_sd, beyond)

    def total(self, target: Target, teams: TeamColumns) -> Total:
        """The curve at its mean parameters, without task and team effects."""
        curve = self.curves[target]
        return target_total(
            self.family(target),
            curve.theta,
            teams,
            self.models,
            noise=curve.noise,
            usd_per_token=stand_in_prices(self.usd_per_token),
        )

    def _design(self, curve: Curve, teams: TeamColumns, total: Total) -> Floats:
        effects = np.zeros((len(teams), len(curve.teams)))
        which = self._effect_of(curve, teams)
        seen = np.flatnonzero(which >= 0)
        effects[seen, which[seen]] = 1.0
        return np.hstack([total.gradient, effects])

    def _posterior(self, curve: Curve, teams: TeamColumns, total: Total) -> tuple[Floats, Floats]:
        """Mean and epistemic variance on the link scale."""
        design = self._design(curve, teams, total)
        effect = design[:, total.gradient.shape[1] :] @ curve.team_effect
        known = design[:, total.gradient.shape[1] :].sum(1)
        variance = np.einsum("np,np->n", design @ curve.cov, design)
        return total.log + effect, np.maximum(variance, 0.0) + (1.0 - known) * curve.s_team**2

    def _mean_above_median(self, curve: Curve) -> float:
        """What lifts the log of a typical run to that of a mean of ``unit_runs`` runs."""
        published = self.published[curve.target]
        variance = published["task"][0] ** 2 + published["noise_total"][0] ** 2
        return 0.5 * variance * (1.0 - 1.0 / curve.unit_runs)

    def _effect_of(self, curve: Curve, teams: TeamColumns) -> Ints:
        """(n,) index of the team's own effect, -1 = none."""
        which = np.full(len(teams), -1, dtype=np.int64)
        if not curve.teams:
            return which
        known, order = _codes(curve.teams, self.models.who)
        code = team_code(teams)
        at = np.minimum(np.searchsorted(known[order], code), len(order) - 1)
        found = known[order][at] == code
        which[found] = order[at][found]
        return which

    def _run_variance(self, target: Target, total: Total) -> Floats:
        """Variance of one run's log around the average: its task and its luck."""
        curve = self.curves[target]
        if target == "cost":
            luck = total.variance if curve.noise_is_by_role else curve.noise[TOTAL] ** 2
        else:
            luck = curve.noise[0] ** 2
        return np.broadcast_to((curve.s_task**2 + luck) / curve.unit_runs, total.log.shape)

    def p_better(self, ours: TeamColumns, theirs: TeamColumns) -> Floats:
        """(n,): probability that the average task earns more with ours than with theirs."""
        curve = self.curves["reward"]
        ours_total, theirs_total = self.total("reward", ours), self.total("reward", theirs)
        a, b = self._design(curve, ours, ours_total), self._design(curve, theirs, theirs_total)
        effects = np.concatenate([curve.theta, curve.team_effect])
        difference = (a - b) @ effects
        own = len(curve.theta)
        unseen = (1.0 - a[:, own:].sum(1)) + (1.0 - b[:, own:].sum(1))
        same = team_code(ours) == team_code(theirs)
        variance = np.einsum("np,np->n", (a - b) @ curve.cov, a - b) + unseen * curve.s_team**2
        p = normal_cdf(difference / np.sqrt(np.maximum(variance, 1e-12)))
        return np.where(same, 0.5, p)


@lru_cache(maxsize=16)
def _codes(teams: tuple[str, ...], who: tuple[str, ...]) -> tuple[Ints, Ints]:
    """Codes of teams in one-line form, and the order that sorts them."""
    codes = team_code(encode([parse_team(team) for team in teams], who))
    return codes, np.argsort(codes, kind="stable")


def team_code(teams: TeamColumns) -> Ints:
    """(n,) one integer for each distinct team.

    Teams with two tiers in a stage are told apart by a digest of the shares.
    """
    k = teams.share.shape[2]
    code = teams.lead * 2 + teams.is_async
    for stage in range(3):
        tier = teams.share[:, stage].argmax(1)
        code = (code * 4096 + teams.count[:, stage]) * (k + 1) + np.where(
            teams.count[:, stage] > 0, tier + 1, 0
        )
    mixed = (teams.share.max(2) < 1.0) & (teams.count > 0)
    weights = np.arange(1, 3 * k + 1).reshape(3, k) ** 2
    blend = np.rint(1000.0 * (teams.share * weights).sum((1, 2))).astype(np.int64)
    return np.where(mixed.any(1), -1 - code - blend, code)


def extrapolates(curve: Curve, teams: TeamColumns, models: Models) -> Floats:
    """(n,) 1 where a lead, a stage's model or a count lies beyond what was seen."""
    seen_lead = np.array([who in curve.support.leads for who in models.who], dtype=bool)
    beyond = ~seen_lead[teams.lead]
    for stage in range(3):
        seen = np.array(
            [who in curve.support.stage_models[stage] for who in models.who], dtype=bool
        )
        beyond |= teams.share[:, stage][:, ~seen].sum(1) > 0
        beyond |= teams.count[:, stage] > curve.support.max_count[stage]
    return beyond.astype(np.float64)


def _join(parts: Sequence[Prediction]) -> Prediction:
    names = ("mean", "epistemic_sd", "run_sd", "extrapolated")
    return Prediction(
        parts[0].target, *(np.concatenate([getattr(p, n) for p in parts]) for n in names)
    )
