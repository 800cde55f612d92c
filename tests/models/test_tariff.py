"""The price of an average token, worked out by hand."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from teamalloc.data.evidence import load_evidence
from teamalloc.data.prices import PriceBook
from teamalloc.data.run import AgentUsage, Run, Source, Tokens, UsageSlice
from teamalloc.data.team import parse_team
from teamalloc.models.tariff import learn_tariff

DAY = date(2026, 12, 1)


@pytest.fixture
def prices(tmp_path: Path) -> PriceBook:
    file = tmp_path / "prices.toml"
    file.write_text(
        '[[price]]\nmodel = "m"\ninput = 2\ncache_read = 0.5\noutput = 10\n'
        '[[price]]\nmodel = "n"\nfrom = 2026-06-01\ninput = 4\ncache_read = 4\noutput = 4\n'
    )
    return PriceBook.load(file)


def run_with(*tokens: Tokens) -> Run:
    agents = tuple(
        AgentUsage(
            "lead" if i == 0 else f"a{i}",
            "lead" if i == 0 else "planner",
            usage=(UsageSlice("m", t),),
        )
        for i, t in enumerate(tokens)
    )
    return Run("r", parse_team("lead=m"), Source("native", 1, "s", ""), agents=agents)


def test_own_mix_and_pooled_mix(prices: PriceBook) -> None:
    # 300 fresh x 2 + 600 cached x 0.5 + 100 output x 10 = 1900 for 1000 tokens: 1.9 a million each.
    tariff = learn_tariff([run_with(Tokens(300, 600, 0, 0, 100))], load_evidence())
    usd = tariff.usd_per_token(["m", "n@high"], prices, on=DAY)
    assert usd[0] == pytest.approx(1.9e-6)
    # n never ran: its tokens cost 4 a million whatever the mix.
    assert usd[1] == pytest.approx(4e-6)


def test_without_a_price_on_the_day_it_is_unknown(prices: PriceBook) -> None:
    tariff = learn_tariff([run_with(Tokens(300, 600, 0, 0, 100))], load_evidence())
    usd = tariff.usd_per_token(["n", "nobody"], prices, on=date(2026, 1, 1))
    assert np.isnan(usd).all()


def test_without_runs_the_published_mix_stands_in(prices: PriceBook) -> None:
    tariff = learn_tariff([], load_evidence())
    usd = tariff.usd_per_token(["m"], prices, on=DAY)
    assert 0.5e-6 < usd[0] < 2e-6
    assert sum(part.tokens.total for part in tariff.pooled) == sum(
        row.tokens.total for row in load_evidence().solo.values()
    )
    assert Decimal(0) < Decimal(repr(float(usd[0])))
