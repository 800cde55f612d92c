"""The answer: which team, how sure, what else was close, and what the next dollar would buy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from teamalloc.allocator.frontier import frontier_cells
from teamalloc.allocator.judge import Judged, best_of, judge, nearest
from teamalloc.allocator.problem import Batch, Problem
from teamalloc.allocator.repair import Repair, find_repairs
from teamalloc.allocator.space import SearchSpace, neighbours
from teamalloc.data.team import TeamConfig, parse_team
from teamalloc.models.curve import Prediction
from teamalloc.models.encode import encode
from teamalloc.models.families import Target
from teamalloc.models.forecast import Forecaster
from teamalloc.models.normal import Z_90, normal_quantile

Verdict = Literal["better", "tie", "infeasible"]

TIE_P = 0.8
TIE_REWARD = 0.005
ESTABLISHED_RUNS = 20
"runs after which a team's own mean is worth more than any curve's guess of another team"
INTERVAL = 0.9
N_STEPS = 5
LEAST_GAIN = 0.05
"points of 100 that a step must be expected to gain to be worth a line"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 90 % interval and, under a limit, the probability of keeping it."""

    value: float
    "mean reward; median US dollars or seconds"
    low: float
    high: float
    p_ok: float | None = None
    "None = there is no such limit"


@dataclass(frozen=True, slots=True)
class Choice:
    """One team as it is shown."""

    team: str
    "one-line form"
    words: str
    reward: Estimate
    "[0, 1]; the interval is that of the average task"
    cost_usd: Estimate
    "US dollars of all tasks; the interval is that of a new batch"
    latency_s: Estimate | None
    "seconds of all tasks; None = there is no latency data"
    p_both_ok: float
    "probability of keeping both limits"
    holds: bool
    "both limits hold at the asked confidence"
    eta: float | None
    "points per added US dollar over the same lead alone, per task; None = no cost is added"
    n_runs: int
    "own runs of exactly this team"
    extrapolated: bool
    "beyond what was seen: a new lead, a new tier in a stage, or more agents"


@dataclass(frozen=True, slots=True)
class Step:
    """One change to the recommended team, and what it would buy."""

    change: str
    choice: Choice
    gain: Estimate
    "points of 100 per task; p_ok is the probability that it earns more"
    added_usd: float
    "US dollars per task, at the median"
    points_per_usd: float | None
    "None where it costs no more"


@dataclass(frozen=True, slots=True)
class Recommendation:
    """An answer that can be checked later: all that went into it is named."""

    verdict: Verdict
    best: Choice
    "the recommended team; with verdict infeasible the nearest team, which is no answer"
    baseline: Choice
    "the best lead alone under the same rule"
    p_better: float | None
    "probability that the best earns more than the baseline; None = it is the baseline"
    runner_up: Choice | None
    "the next best team by the rule that chose the best"
    p_better_than_runner_up: float | None
    why: str
    "why the recommended one and not the runner-up, in a sentence"
    tied_with: Choice | None
    "the team it ties with, which the rule would have chosen; None = no tie was resolved"
    other_kind: Choice | None
    "the best team with another lead, or other tiers or stages"
    next_dollar: tuple[Step, ...]
    "changes worth considering, best buy first"
    frontier: tuple[Choice, ...]
    "teams that hold and earn more than any cheaper one"
    repairs: tuple[Repair, ...]
    "what would make something fit; empty unless infeasible"
    n_teams: int
    "teams looked at"
    n_holding: int
    "teams that keep both limits"
    problem: Problem
    digest: str
    "of the curves"


def recommend(
    problem: Problem,
    forecaster: Forecaster,
    *,
    space: SearchSpace,
    forecast: Mapping[Target, Prediction] | None = None,
) -> Recommendation:
    """Look at every allowed team and choose.

    Args:
        problem: limits, batch, confidence.
        forecaster: fitted curves.
        space: allowed teams.
        forecast: predictions for all cells of the space, if they are at hand.
    """
    return _Search(problem, forecaster, space, forecast).answer()


class _Search:
    """One question: the judged grid and what is derived from it."""

    def __init__(
        self,
        problem: Problem,
        forecaster: Forecaster,
        space: SearchSpace,
        forecast: Mapping[Target, Prediction] | None,
    ) -> None:
        self.problem, self.forecaster, self.space = problem, forecaster, space
        if forecast is None:
            forecast = forecaster.predict(
                space.columns(forecaster.models.who, np.arange(len(space)))
            )
        self.forecast = forecast
        self.grid = judge(forecast, forecaster, problem)
        self.distinct, self.solo = space.is_distinct(), space.is_solo()
        self._choices: dict[TeamConfig, Choice] = {}
        self.led = set(forecaster.curves["reward"].support.leads)
        self.n_seen = {record.team: record.n_runs for record in forecaster.records}

    def answer(self) -> Recommendation:
        best = best_of(self.grid, self.distinct)
        if best is None:
            return self._refusal()
        best = self._familiar(best)
        found = self.space.team(best)
        others = self.distinct.copy()
        others[best] = False
        second = best_of(self.grid, others)
        runner_up = None if second is None else self.space.team(second)
        kind = self.space.kind()
        third = best_of(self.grid, self.distinct & (kind != kind[best]))
        other_kind = None if third is None else self.space.team(third)
        baseline = self._baseline()
        chosen, tied_with = self._settle(found, runner_up, [baseline, self._established()])
        if runner_up == chosen:
            runner_up = found
        return self._report(chosen, tied_with, baseline, runner_up, other_kind)

    def _familiar(self, best: int) -> int:
        """The best team with a lead that was run, unless an untried lead is probably better.

        What a lead earns carries over to other tasks least of all, and it sets the ceiling.
        """
        if self._has_led(self.space.team(best)):
            return best
        led = [k for k, who in enumerate(self.space.leads) if who in self.led]
        tried = np.isin(self.space.lead(), led)
        familiar = best_of(self.grid, self.distinct & tried)
        if familiar is None:
            return best
        p = self._p_better(self.space.team(best), self.space.team(familiar))
        return best if p >= TIE_P else familiar

    def _has_led(self, team: TeamConfig) -> bool:
        """Whether graded runs were led so; without any such run, no lead is less tried than another."""
        return not self.led or team.lead.who in self.led

    def _settle(
        self, found: TeamConfig, runner_up: TeamConfig | None, others: Sequence[TeamConfig | None]
    ) -> tuple[TeamConfig, TeamConfig | None]:
        """The cheapest rival the best team cannot be told from; the team itself if there is none.

        The runner-up is one of thousands of near neighbours, with which a probability below
        ``TIE_P`` is the rule: it takes over only if the gain is not worth naming. Otherwise each
        answer would walk down the grid by points that are expected, only not certain. A team known
        by many runs of its own gives way only to another such team, and goes before the others.
        """
        tied = [t for t in others if t is not None and self._tied(found, t, TIE_P)]
        if runner_up is not None and self._tied(found, runner_up, 0.0):
            tied.append(runner_up)
        proven = [team for team in tied if self._n_runs(team) >= ESTABLISHED_RUNS]
        if self._n_runs(found) >= ESTABLISHED_RUNS or proven:
            tied = proven
        chosen = min(tied, key=lambda t: (self._choice(t).cost_usd.value, str(t)), default=found)
        return chosen, (None if chosen == found else found)

    def _tied(self, ours: TeamConfig, theirs: TeamConfig, least_p: float) -> bool:
        """Whether a cheaper team that holds cannot be told from ours (see ``TIE_REWARD``)."""
        mine, other = self._choice(ours), self._choice(theirs)
        if ours == theirs or not other.holds or other.cost_usd.value >= mine.cost_usd.value:
            return False
        gain = mine.reward.value - other.reward.value
        alike = gain < TIE_REWARD or self._p_better(ours, theirs) < least_p
        return alike and self._has_led(theirs)

    def _n_runs(self, team: TeamConfig) -> int:
        return self.n_seen.get(str(team), 0)

    def _baseline(self) -> TeamConfig:
        solo = self.distinct & self.solo
        best = best_of(self.grid, solo)
        return self.space.team(nearest(self.grid, solo) if best is None else best)

    def _established(self) -> TeamConfig | None:
        """The best team that was run often enough to be known by its own mean, if it holds."""
        best: tuple[float, TeamConfig] | None = None
        for record in self.forecaster.records:
            if record.n_runs < ESTABLISHED_RUNS:
                break
            team = parse_team(record.team)
            if not self.space.allows(team):
                continue
            choice = self._choice(team)
            if choice.holds and (best is None or choice.reward.value > best[0]):
                best = (choice.reward.value, team)
        return None if best is None else best[1]

    def _report(
        self,
        chosen: TeamConfig,
        tied_with: TeamConfig | None,
        baseline: TeamConfig,
        runner_up: TeamConfig | None,
        other_kind: TeamConfig | None,
    ) -> Recommendation:
        best, solo = self._choice(chosen), self._choice(baseline)
        second = None if runner_up is None else self._choice(runner_up)
        p_second = None if runner_up is None else self._p_better(chosen, runner_up)
        p_better = None if chosen == baseline else self._p_better(chosen, baseline)
        rivals = ((solo, p_better), (second, p_second))
        clear = all(
            rival is None
            or p is None
            or (p >= TIE_P and best.reward.value - rival.reward.value >= TIE_REWARD)
            for rival, p in rivals
        )
        return self._recommendation(
            verdict="better" if clear and tied_with is None else "tie",
            best=best,
            baseline=solo,
            p_better=p_better,
            runner_up=second,
            p_better_than_runner_up=p_second,
            why=_why(
                best,
                second,
                p_second,
                untried=runner_up is not None and not self._has_led(runner_up),
            ),
            tied_with=None if tied_with is None else self._choice(tied_with),
            other_kind=None if other_kind in (None, chosen) else self._choice(other_kind),
            next_dollar=self._next_dollar(chosen),
        )

    def _refusal(self) -> Recommendation:
        closest = self.space.team(nearest(self.grid, self.distinct))
        baseline = self._baseline()
        return self._recommendation(
            verdict="infeasible",
            best=self._choice(closest),
            baseline=self._choice(baseline),
            p_better=None if closest == baseline else self._p_better(closest, baseline),
            runner_up=None,
            p_better_than_runner_up=None,
            why="no allowed team keeps the limits",
            tied_with=None,
            other_kind=None,
            next_dollar=(),
            repairs=(
                *find_repairs(self.problem, self.grid, self.distinct, self.space),
                *self._fewer_tasks(),
            ),
        )

    def _fewer_tasks(self) -> Iterator[Repair]:
        """The largest number of tasks for which something would hold, by bisection."""
        fits, too_many, team = 0, self.problem.n_tasks, ""
        while too_many - fits > 1:
            n = (fits + too_many) // 2
            fewer = replace(self.problem, n_tasks=n)
            cell = best_of(judge(self.forecast, self.forecaster, fewer), self.distinct)
            if cell is None:
                too_many = n
            else:
                fits, team = n, str(self.space.team(cell))
        if fits:
            problem = self.problem
            yield Repair(
                "tasks", problem.budget_usd, problem.latency_s, problem.confidence, fits, team
            )

    def _recommendation(
        self, *, repairs: tuple[Repair, ...] = (), **parts: object
    ) -> Recommendation:
        frontier = [self.space.team(cell) for cell in frontier_cells(self.grid, self.distinct)]
        self._look_at(frontier)
        return Recommendation(
            frontier=tuple(self._choice(team) for team in frontier),
            repairs=repairs,
            n_teams=int(self.distinct.sum()),
            n_holding=int((self.grid.holds & self.distinct).sum()),
            problem=self.problem,
            digest=self.forecaster.digest,
            **parts,  # type: ignore[arg-type]
        )

    def _next_dollar(self, team: TeamConfig) -> tuple[Step, ...]:
        tiers = sorted(zip(self.forecaster.models.tier, self.forecaster.models.who, strict=True))
        changes = neighbours(team, self.space, [who for _, who in tiers])
        self._look_at([other for _, other in changes])
        steps = [self._step(team, change, other) for change, other in changes]
        useful = [step for step in steps if step.gain.value > LEAST_GAIN]
        useful.sort(key=lambda s: (not s.choice.holds, -(s.points_per_usd or np.inf), s.change))
        return tuple(useful[:N_STEPS])

    def _step(self, team: TeamConfig, change: str, other: TeamConfig) -> Step:
        ours, theirs = self._choice(team), self._choice(other)
        points = 100.0 * (theirs.reward.value - ours.reward.value)
        added = (theirs.cost_usd.value - ours.cost_usd.value) / self.problem.n_tasks
        p = self._p_better(other, team) if points > LEAST_GAIN else 0.5
        half = _half_width(points, p)
        gain = Estimate(points, points - half, points + half, p)
        return Step(change, theirs, gain, added, points / added if added > 0 else None)

    def _choice(self, team: TeamConfig) -> Choice:
        self._look_at([team])
        return self._choices[team]

    def _look_at(self, teams: Sequence[TeamConfig]) -> None:
        """Work out how these teams are shown, all at once: each beside its lead alone."""
        new = [team for team in dict.fromkeys(teams) if team not in self._choices]
        if not new:
            return
        pairs = [team for each in new for team in (each, TeamConfig(each.lead))]
        forecast = self.forecaster.predict(encode(pairs, self.forecaster.models.who))
        judged = judge(forecast, self.forecaster, self.problem)
        seconds_known = knows_latency(self.forecaster)
        for i, team in enumerate(new):
            n_runs = self.n_seen.get(str(team), 0)
            self._choices[team] = _show(team, judged, 2 * i, self.problem, n_runs, seconds_known)

    def _p_better(self, ours: TeamConfig, theirs: TeamConfig) -> float:
        who = self.forecaster.models.who
        return float(self.forecaster.p_better(encode([ours], who), encode([theirs], who))[0])


def _show(
    team: TeamConfig, judged: Judged, row: int, problem: Problem, n_runs: int, seconds_known: bool
) -> Choice:
    """Row ``row`` of ``judged`` is the team, the next one its lead alone."""
    reward, usd = judged.reward.mean, np.exp(judged.cost.median)
    added = float(usd[row] - usd[row + 1]) / problem.n_tasks
    points = 100.0 * float(reward[row] - reward[row + 1])
    p_cost = None if problem.budget_usd is None else float(judged.p_cost_ok[row])
    p_latency = None if problem.latency_s is None else float(judged.p_latency_ok[row])
    return Choice(
        team=str(team),
        words=team.describe(),
        reward=_reward(float(reward[row]), float(judged.reward.epistemic_sd[row])),
        cost_usd=_total(judged.cost, row, p_cost),
        latency_s=_total(judged.latency, row, p_latency) if seconds_known else None,
        p_both_ok=float(judged.p_both_ok[row]),
        holds=bool(judged.holds[row]),
        eta=points / added if added > 0 and not team.is_solo else None,
        n_runs=n_runs,
        extrapolated=bool(judged.reward.extrapolated[row]),
    )


def _total(batch: Batch, row: int, p_ok: float | None) -> Estimate:
    low, high = (1.0 - INTERVAL) / 2.0, (1.0 + INTERVAL) / 2.0
    return Estimate(
        float(np.exp(batch.median[row])),
        float(batch.quantile(low)[row]),
        float(batch.quantile(high)[row]),
        p_ok,
    )


def _reward(mean: float, sd: float) -> Estimate:
    """Its interval is taken on the logit scale: it ends inside [0, 1]."""
    logit, half = math.log(mean / (1.0 - mean)), Z_90 * sd / (mean * (1.0 - mean))
    low, high = (1.0 / (1.0 + math.exp(-(logit + side * half))) for side in (-1.0, 1.0))
    return Estimate(mean, low, high)


def knows_latency(forecaster: Forecaster) -> bool:
    """Whether seconds come from own runs or published rows, and not from nothing."""
    published = not np.all(np.isnan(forecaster.models.solo_s))
    return forecaster.curves["latency"].support.n_runs > 0 or published


def knows_cost(forecaster: Forecaster) -> bool:
    """The same for US dollars."""
    published = not np.all(np.isnan(forecaster.models.solo_tokens))
    return forecaster.curves["cost"].support.n_runs > 0 or published


def _half_width(points: float, p: float) -> float:
    """Half the 90 % interval of a normal difference with this mean and P(> 0)."""
    z = abs(normal_quantile(min(max(p, 1e-6), 1.0 - 1e-6)))
    return Z_90 * abs(points) / max(z, 1e-3)


def _why(best: Choice, second: Choice | None, p: float | None, *, untried: bool) -> str:
    if second is None or p is None:
        return "no other team keeps the limits"
    if untried:
        return f"its lead was never run here (P {1.0 - p:.2f} that it earns more): worth a trial"
    gain = 100.0 * (best.reward.value - second.reward.value)
    usd = second.cost_usd.value - best.cost_usd.value
    if gain >= 0:
        return f"it is expected to earn {gain:.1f} points less (P {1.0 - p:.2f} that it earns more)"
    if usd > 0:
        return f"its {-gain:.1f} points more are not certain (P {1.0 - p:.2f}) and cost ${usd:.2f} more"
    return f"its {-gain:.1f} points more come with more doubt about the limits (both kept: {second.p_both_ok:.2f})"
