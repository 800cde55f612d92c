"""One estimator behind all three curves: a regression with a prior, task effects and team effects.

On its link scale (log for dollars, tokens and seconds; logit for reward) an observation is

    y_i = f_i(theta) + u_task(i) + v_team(i) + e_i
    theta ~ N(prior, tau^2 diag(sd^2)),  u ~ N(0, s_task^2),  v ~ N(0, s_team^2),  e ~ N(0, s_g(i)^2 m_i)

``theta`` are the curve's parameters, and the published figures are their prior. The task effect is
integrated out, so a fit costs O(rows x parameters^2). Where ``f`` is not linear (a sum of roles or
of waits) it is re-linearised at each step (Gauss-Newton); for rewards the working response and
weights of a fractional logit are used (Papke and Wooldridge 1996), which take graded and pass/fail
rewards alike. The scales (tau, s_task, s_team, s_g) are found by expectation-maximisation in the
same loop, each with a weak prior, so that ten runs do not pin them down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from teamalloc.models.encode import Floats, Ints
from teamalloc.models.families import Prior

Linearise = Callable[[Floats], tuple[Floats, Floats]]
"theta (p,) -> f (rows,), its gradient (rows, p)"

MAX_STEPS = 60


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """What was observed; ``n`` rows."""

    y: Floats
    "(n,) log of the observed value, or a reward in [0, 1] for the logit link"
    task: Ints
    "(n,) index of the task; -1 = none shared (the mean over many tasks)"
    team: Ints
    "(n,) index of the team among those with an effect of their own; -1 = none"
    group: Ints
    "(n,) noise group"
    noise_factor: Floats
    "(n,) known factor of the noise variance (1/number of runs behind a mean, …)"


@dataclass(frozen=True, slots=True, eq=False)
class Scales:
    """Standard deviations on the link scale, before and after the fit."""

    tau: float
    "width of the prior on theta, as a factor"
    task: float
    team: float
    noise: Floats
    "(groups,); for the logit link: 1/sqrt(precision), 1 = pass/fail"
    weight: float = 8.0
    "how many observations the first guess of a scale is worth"
    tau_weight: float = 1.0
    "the same for tau, as a multiple of the number of parameters"
    fixed_noise: tuple[int, ...] = ()
    "groups whose noise is known (pass/fail)"


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Estimate of theta followed by the team effects, and the scales."""

    theta: Floats
    "(p,)"
    team_effect: Floats
    "(teams,)"
    cov: Floats
    "(p + teams, p + teams)"
    scales: Scales


@dataclass(slots=True, eq=False)
class _Step:
    """One solution of the linearised problem."""

    beta: Floats
    cov: Floats
    task_effect: Floats
    task_var: Floats
    fitted_var: Floats


def fit_mixed(
    linearise: Linearise,
    rows: Rows,
    prior: Prior,
    scales: Scales,
    *,
    link: Literal["log", "logit"] = "log",
    n_teams: int = 0,
    learn_scales: bool = True,
    start: Posterior | None = None,
) -> Posterior:
    """Fit theta, team effects and scales.

    Args:
        linearise: the curve and its gradient at theta.
        rows: what was observed.
        prior: of theta, before the common factor tau.
        scales: first guesses; kept as they are if ``learn_scales`` is False.
        link: scale of ``rows.y``.
        n_teams: number of team effects.
        learn_scales: False refits with known scales (cross-validation).
        start: where to start from; None = the prior.
    """
    p, n = len(prior.mean), len(rows.y)
    theta = prior.mean.copy() if start is None else start.theta.copy()
    effect = np.zeros(n_teams) if start is None else start.team_effect.copy()
    n_tasks = int(rows.task.max()) + 1 if n else 0
    task_effect = np.zeros(max(n_tasks, 1))
    has_team = rows.team >= 0
    team_columns = np.zeros((n, n_teams))
    team_columns[np.flatnonzero(has_team), rows.team[has_team]] = 1.0
    mean = np.concatenate([prior.mean, np.zeros(n_teams)])
    guess = scales
    for _ in range(MAX_STEPS):
        f, gradient = linearise(theta)
        design = np.hstack([gradient, team_columns])
        beta = np.concatenate([theta, effect])
        offset = f - gradient @ theta
        eta = offset + design @ beta + np.where(rows.task >= 0, task_effect[rows.task], 0.0)
        response, unit_weight = _working(rows.y, eta, link)
        weight = unit_weight / (scales.noise[rows.group] ** 2 * rows.noise_factor)
        tau = np.where(prior.is_level, 1.0, scales.tau)
        width = np.concatenate([prior.sd * tau, np.full(n_teams, scales.team)])
        step = _solve(
            design, response - offset, weight, rows.task, n_tasks, scales.task, mean, width
        )
        moved = float(np.max(np.abs(step.beta - beta) / np.maximum(width, 1e-9), initial=0.0))
        theta, effect = step.beta[:p], step.beta[p:]
        task_effect = step.task_effect
        before = scales
        if learn_scales:
            residual = response - offset - design @ step.beta
            scales = _update(guess, step, residual, rows, unit_weight, prior)
        if moved < 1e-3 and _settled(before, scales):
            break
    return Posterior(theta, effect, step.cov, scales)


def _working(y: Floats, eta: Floats, link: str) -> tuple[Floats, Floats]:
    """Working response and weight of one observation with unit noise."""
    if link == "log":
        return y, np.ones_like(y)
    eta = np.clip(eta, -6.0, 6.0)
    mean = 1.0 / (1.0 + np.exp(-eta))
    slope = mean * (1.0 - mean)
    return eta + (y - mean) / slope, slope


def _solve(
    design: Floats,
    response: Floats,
    weight: Floats,
    task: Ints,
    n_tasks: int,
    s_task: float,
    mean: Floats,
    width: Floats,
) -> _Step:
    """Posterior of beta with the task effects integrated out (Schur complement)."""
    shared = task >= 0
    index = np.where(shared, task, 0)
    precision = np.bincount(index, weight * shared, minlength=max(n_tasks, 1)) + s_task**-2
    weighted = design * weight[:, None]
    cross = _sum_by(index[shared], weighted[shared], max(n_tasks, 1))
    right_task = np.bincount(index, weight * response * shared, minlength=max(n_tasks, 1))
    schur = design.T @ weighted - cross.T @ (cross / precision[:, None])
    schur[np.diag_indices_from(schur)] += width**-2.0
    right = weighted.T @ response - cross.T @ (right_task / precision) + mean / width**2
    cov = np.linalg.inv(schur)
    cov = 0.5 * (cov + cov.T)
    beta = cov @ right
    projected = cross / precision[:, None]
    task_effect = right_task / precision - projected @ beta
    through_beta = projected @ cov
    task_var = 1.0 / precision + np.einsum("tp,tp->t", through_beta, projected)
    spread = np.einsum("np,np->n", design @ cov, design)
    both = np.einsum("np,np->n", design, through_beta[index])
    fitted_var = np.where(shared, spread - 2.0 * both + task_var[index], spread)
    return _Step(beta, cov, task_effect, task_var, np.maximum(fitted_var, 0.0))


def _update(
    guess: Scales,
    step: _Step,
    residual: Floats,
    rows: Rows,
    unit_weight: Floats,
    prior: Prior,
) -> Scales:
    """One expectation-maximisation step for the scales, each shrunk to its first guess."""
    p, shared = len(prior.mean), rows.task >= 0
    within = residual - np.where(shared, step.task_effect[rows.task], 0.0)
    squared = (within**2 + step.fitted_var) * unit_weight / rows.noise_factor
    n_groups = len(guess.noise)
    total = np.bincount(rows.group, squared, minlength=n_groups) + guess.weight * guess.noise**2
    noise = np.sqrt(total / (np.bincount(rows.group, minlength=n_groups) + guess.weight))
    known = list(guess.fixed_noise)
    noise[known] = guess.noise[known]
    variance = np.diag(step.cov)
    moved = (((step.beta[:p] - prior.mean) ** 2 + variance[:p]) / prior.sd**2)[~prior.is_level]
    seen = np.zeros(len(step.task_effect), dtype=bool)
    seen[rows.task[shared]] = True
    return replace(
        guess,
        tau=_pooled(moved, guess.tau, guess.tau_weight * len(moved)),
        task=_pooled((step.task_effect**2 + step.task_var)[seen], guess.task, guess.weight),
        team=_pooled(step.beta[p:] ** 2 + variance[p:], guess.team, guess.weight),
        noise=noise,
    )


def _sum_by(index: Ints, values: Floats, n: int) -> Floats:
    """(n, columns): sum of the rows of ``values`` that share an index."""
    total = np.zeros((n, values.shape[1]))
    if len(index):
        order = np.argsort(index, kind="stable")
        starts = np.flatnonzero(np.diff(index[order], prepend=-1))
        total[index[order][starts]] = np.add.reduceat(values[order], starts)
    return total


def _pooled(squares: Floats, guess: float, weight: float) -> float:
    return float(np.sqrt((squares.sum() + weight * guess**2) / (len(squares) + weight)))


def _settled(before: Scales, after: Scales) -> bool:
    old = np.array([before.tau, before.task, before.team, *before.noise])
    new = np.array([after.tau, after.task, after.team, *after.noise])
    return bool(np.all(np.abs(new - old) <= 0.01 * old))
