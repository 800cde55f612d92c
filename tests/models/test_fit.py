"""Fits of a planted world come back with its formulas; without data they say so."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal

import numpy as np
import pytest

from planted import LUNA, SOL, planted_runs, planted_teams, true_cost_usd, true_reward, true_seconds
from teamalloc.data.prices import PriceBook
from teamalloc.data.run import Run
from teamalloc.data.team import TeamConfig, parse_team
from teamalloc.errors import NotEnoughRuns
from teamalloc.models.check import check_fit
from teamalloc.models.encode import encode
from teamalloc.models.fit import fit_forecaster
from teamalloc.models.forecast import Forecaster
from teamalloc.models.samples import to_samples
from teamalloc.models.saved import decode_forecaster, encode_forecaster

DAY = date(2026, 12, 1)
PRICES = PriceBook.load()


def fit(runs: list[Run]) -> Forecaster:
    return fit_forecaster(runs, prices=PRICES, on=DAY)


@pytest.fixture(scope="module")
def planted() -> Forecaster:
    return fit(planted_runs(400, 40))


def test_the_formulas_of_the_world_come_back(planted: Forecaster) -> None:
    teams = planted_teams()
    forecast = planted.predict(encode(teams, planted.models.who))
    reward = [true_reward(team) for team in teams]
    np.testing.assert_allclose(forecast["reward"].mean, reward, atol=0.06)
    cost, seconds = forecast["cost"], forecast["latency"]
    true = np.log([true_cost_usd(team) for team in teams])
    np.testing.assert_allclose(cost.mean, true, atol=0.25)
    np.testing.assert_allclose(seconds.mean, np.log([true_seconds(t) for t in teams]), atol=0.25)
    # The truth lies within what the fit says it does not know.
    assert np.mean(np.abs(cost.mean - true) < 2.0 * cost.epistemic_sd) > 0.8


def test_dollars_alone_teach_what_tokens_and_prices_teach() -> None:
    runs = planted_runs(400, 40)
    totals = [replace(run, agents=(), total_reported_usd=run.cost_usd) for run in runs]
    teams = planted_teams()
    found = fit(totals)
    cost = found.predict(encode(teams, found.models.who))["cost"]
    np.testing.assert_allclose(cost.mean, np.log([true_cost_usd(t) for t in teams]), atol=0.25)


def test_held_out_runs_fall_into_their_intervals() -> None:
    checks = {
        (c.target, c.held_out): c for c in check_fit(planted_runs(300, 60), prices=PRICES, on=DAY)
    }
    for target in ("cost", "latency"):
        check = checks[target, "tasks"]
        assert check.coverage_90 is not None
        assert check.error is not None
        assert check.error_of_constant is not None
        assert 0.82 <= check.coverage_90 <= 0.98
        assert check.error < check.error_of_constant


def test_new_prices_need_no_new_fit(planted: Forecaster) -> None:
    # On 2026-07-01 luna cost 1 and sol 5 USD a million input tokens.
    before = planted.repriced(PRICES, date(2026, 7, 1))
    teams = encode(planted_teams()[:2], planted.models.who)
    rise = before.predict(teams)["cost"].mean - planted.predict(teams)["cost"].mean
    np.testing.assert_allclose(np.exp(rise), [1.0 / 0.2, 5.0 / 4.0], rtol=1e-6)


@pytest.mark.parametrize("n", [0, 1])
def test_a_single_run_and_no_run_at_all_give_wide_answers(n: int) -> None:
    found = fit(planted_runs(n))
    team = parse_team(f"lead={found.models.who[-1]}")
    forecast = found.predict(encode([team], found.models.who))
    assert np.isfinite(forecast["cost"].mean).all()
    assert forecast["cost"].epistemic_sd[0] > 0.2
    assert forecast["reward"].epistemic_sd[0] > 0.03


def test_a_model_of_which_nothing_is_known_is_refused_without_runs() -> None:
    with pytest.raises(NotEnoughRuns, match="nothing is known of unheard-of"):
        fit_forecaster([], prices=PRICES, on=DAY, more_models=["unheard-of"])


def test_what_does_not_reach_a_fit_is_named() -> None:
    runs = planted_runs(8)
    odd = [
        replace(runs[0], multi_turn=True),
        replace(runs[1], team=None),
        replace(runs[2], status="timed_out"),
        replace(runs[3], agents=(), total_reported_usd=Decimal(0)),
        replace(runs[4], agents=()),
        *runs[5:],
    ]
    samples = to_samples(odd)
    assert len(samples) == 6
    assert len(samples.left_out) == 5
    assert np.isnan(samples.cost_usd).sum() == 3
    assert np.isnan(samples.active_s).sum() == 1


def test_a_reward_is_pass_fail_only_where_every_single_one_is() -> None:
    runs = planted_runs(4)
    coins = [replace(run, reward=float(i % 2)) for i, run in enumerate(runs)]
    assert to_samples(coins).pass_fail.all()
    assert not to_samples([*coins[1:], replace(coins[0], reward=0.4)]).pass_fail.any()


def test_saved_curves_are_the_same_curves(planted: Forecaster) -> None:
    body = encode_forecaster(planted)
    again = decode_forecaster(body)
    assert encode_forecaster(again) == body
    teams = encode(planted_teams(), planted.models.who)
    for target, forecast in planted.predict(teams).items():
        np.testing.assert_array_equal(again.predict(teams)[target].mean, forecast.mean)


def test_p_better_is_that_of_draws_from_the_posterior(planted: Forecaster) -> None:
    ours, theirs = planted_teams()[4], planted_teams()[0]
    columns = [encode([team], planted.models.who) for team in (ours, theirs)]
    curve = planted.curves["reward"]
    rng = np.random.default_rng(0)
    draws = rng.multivariate_normal(
        np.concatenate([curve.theta, curve.team_effect]), curve.cov, 20_000
    )
    eta = []
    for team, column in zip((ours, theirs), columns, strict=True):
        parts = planted.family("reward").components(curve.theta, column, planted.models)
        own = np.array([float(name == str(team)) for name in curve.teams])
        eta.append(draws @ np.concatenate([parts.design[0, 0], own]))
    assert planted.p_better(*columns)[0] == pytest.approx(np.mean(eta[0] > eta[1]), abs=0.02)


def test_models_without_any_price_are_told_apart_by_what_runs_cost_in_all() -> None:
    new = {LUNA: "cheap", SOL: "dear"}

    def renamed(team: TeamConfig) -> TeamConfig:
        seats = [replace(seat, model=new[seat.model]) for seat in team.seats]
        return TeamConfig(seats[0], tuple(seats[1:]), team.mode)

    runs = [
        replace(run, team=renamed(run.team), agents=(), total_reported_usd=run.cost_usd)
        for run in planted_runs(200, 20)
        if run.team is not None
    ]
    found = fit(runs)
    assert found.models.who == ("cheap", "dear")
    assert found.models.tier.tolist() == [-1.0, 1.0]
    assert not found.models.priced.any()
    # Twenty times the price, as planted.
    assert found.usd_per_token[1] / found.usd_per_token[0] == pytest.approx(20.0, rel=0.5)
    teams = planted_teams()
    cost = found.predict(encode([renamed(team) for team in teams], found.models.who))["cost"]
    np.testing.assert_allclose(cost.mean, np.log([true_cost_usd(t) for t in teams]), atol=0.3)


def test_where_tokens_times_price_is_not_the_logged_cost_the_logged_cost_counts() -> None:
    def billed_otherwise(run: Run) -> Run:
        agents = tuple(
            replace(agent, usage=tuple(replace(piece, cost_list_usd=None) for piece in agent.usage))
            for agent in run.agents
        )
        assert run.cost_usd is not None
        return replace(run, agents=agents, total_reported_usd=run.cost_usd * 7)

    found = fit([billed_otherwise(run) for run in planted_runs(200, 20)])
    assert any("list price" in reason for reason, _ in found.left_out)
    teams = planted_teams()
    cost = found.predict(encode(teams, found.models.who))["cost"]
    np.testing.assert_allclose(cost.mean, np.log([7 * true_cost_usd(t) for t in teams]), atol=0.3)
