"""Prices: truth from published price tables (as of 2026-12-01) and the bug cases' own arithmetic."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teamalloc.data.prices import PriceBook, normalise_model
from teamalloc.data.run import Tokens
from teamalloc.errors import BadLog

DEC_1 = datetime(2026, 12, 1, 15, tzinfo=UTC)
ONE_OF_EACH = Tokens(1_000, 2_000, 3_000, 4_000, 5_000)


@pytest.fixture(autouse=True)
def _no_user_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TEAMALLOC_PRICES", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-config"))


@pytest.fixture
def book() -> PriceBook:
    return PriceBook.load()


def user_book(tmp_path: Path, text: str) -> PriceBook:
    path = tmp_path / "prices.toml"
    path.write_text(text)
    return PriceBook.load(path)


@pytest.mark.parametrize(
    ("model", "fresh", "read", "write", "write_1h", "out"),
    [
        ("gpt-5.6-luna", "0.2", "0.02", "0.25", "0.25", "1.2"),
        ("gpt-5.6-terra", "2", "0.2", "2.5", "2.5", "12"),
        ("gpt-5.6-sol", "4", "0.4", "5", "5", "20"),
        ("gpt-6.1-sol", "2", "0.1", "2.5", "2.5", "10"),
        ("claude-opus-5-5", "4", "0.2", "5", "8", "20"),
        ("claude-opus-5", "5", "0.5", "6.25", "10", "25"),
        ("claude-haiku-4-5", "1", "0.1", "1.25", "2", "5"),
        ("claude-sonnet-5-5", "2", "0.1", "2.5", "4", "10"),
        ("gemini-3.6-flash", "0.75", "0.075", "0.75", "0.75", "3.75"),
    ],
)
def test_list_prices(
    book: PriceBook, model: str, fresh: str, read: str, write: str, write_1h: str, out: str
) -> None:
    rates = book.rates(model, on=date(2026, 12, 1))
    assert rates is not None
    assert [rates.fresh_input, rates.cache_read, rates.output] == list(
        map(Decimal, [fresh, read, out])
    )
    assert (rates.cache_write_5m, rates.cache_write_1h) == (Decimal(write), Decimal(write_1h))
    expected = sum(
        n * Decimal(usd)
        for n, usd in zip((1, 2, 3, 4, 5), (fresh, read, write, write_1h, out), strict=True)
    )
    assert book.cost_usd(model, ONE_OF_EACH, at=DEC_1) == expected / 1000


def test_a_price_is_that_of_the_day(book: PriceBook) -> None:
    million_out = Tokens(output=1_000_000)
    before = book.cost_usd("gpt-5.6-luna", million_out, at=datetime(2026, 7, 29, 23, tzinfo=UTC))
    after = book.cost_usd("gpt-5.6-luna", million_out, at=datetime(2026, 7, 30, 0, tzinfo=UTC))
    assert (before, after) == (Decimal(6), Decimal("1.2"))


def test_a_context_tier_is_a_cliff_on_the_whole_request(book: PriceBook) -> None:
    at_edge, above = Tokens(72_000, 200_000), Tokens(72_001, 200_000)
    assert book.band("gpt-5.6-sol", at_edge, at=DEC_1) == 0
    assert book.band("gpt-5.6-sol", above, at=DEC_1) == 272_000
    assert book.cost_usd("gpt-5.6-sol", at_edge, at=DEC_1) == Decimal("0.368")
    assert book.cost_usd("gpt-5.6-sol", above, at=DEC_1) == Decimal("0.736008")
    high = book.rates("gpt-5.6-sol", on=date(2026, 12, 1), band=272_000)
    assert high is not None
    assert (high.fresh_input, high.output) == (Decimal(8), Decimal(30))
    # a band of another price list counts by the tier it lies in
    assert book.rates("gpt-5.6-sol", on=date(2026, 12, 1), band=200_000) == book.rates(
        "gpt-5.6-sol", on=date(2026, 12, 1)
    )


@pytest.mark.parametrize(
    "model", ["gpt-6.2-sol", "acme-coder-9", "deepseek-v4-pro:free", "", "x y"]
)
def test_an_unknown_model_has_no_price(book: PriceBook, model: str) -> None:
    assert book.cost_usd(model, ONE_OF_EACH, at=DEC_1) is None
    assert book.rates(model, on=date(2026, 12, 1)) is None
    assert book.band(model, ONE_OF_EACH, at=DEC_1) == 0


@pytest.mark.parametrize("word", [None, "standard", "default", "auto", "Default"])
def test_words_for_the_base_price(book: PriceBook, word: str | None) -> None:
    base = book.cost_usd("gpt-5.6-sol", ONE_OF_EACH, at=DEC_1)
    assert book.cost_usd("gpt-5.6-sol", ONE_OF_EACH, at=DEC_1, service_tier=word) == base
    assert book.cost_usd("gpt-5.6-sol", ONE_OF_EACH, at=DEC_1, speed=word) == base


def test_tiers_and_speed_come_from_the_list_or_are_unknown(book: PriceBook) -> None:
    base = book.cost_usd("gpt-5.6-sol", ONE_OF_EACH, at=DEC_1)
    assert base is not None

    def tier(name: str, at: datetime = DEC_1) -> Decimal | None:
        return book.cost_usd("gpt-5.6-sol", ONE_OF_EACH, at=at, service_tier=name)

    assert (tier("priority"), tier("flex"), tier("batch")) == (base * 2, base / 2, base / 2)
    assert tier("moonlight") is None
    assert tier("priority", datetime(2026, 9, 1, tzinfo=UTC)) is None  # listed from 2026-10-12
    fast = book.cost_usd("claude-opus-4-8", ONE_OF_EACH, at=DEC_1, speed="fast")
    plain = book.cost_usd("claude-opus-4-8", ONE_OF_EACH, at=DEC_1)
    assert plain is not None
    assert fast == plain * 2
    assert book.cost_usd("claude-opus-4-8-fast", ONE_OF_EACH, at=DEC_1) == fast
    assert book.cost_usd("claude-haiku-4-5", ONE_OF_EACH, at=DEC_1, speed="fast") is None
    assert (
        book.cost_usd("claude-opus-4-8", ONE_OF_EACH, at=DEC_1, speed="fast", service_tier="batch")
        is None
    )


def test_a_bedrock_region_costs_more_than_the_global_profile(book: PriceBook) -> None:
    def cost(model: str) -> Decimal | None:
        return book.cost_usd(model, Tokens(output=1_000_000), at=DEC_1)

    assert cost("claude-opus-4-8") == cost("global.anthropic.claude-opus-4-8-v1:0") == 25
    assert cost("us.anthropic.claude-opus-4-8-v1:0") == Decimal("27.5")
    assert cost("bedrock/eu.anthropic.claude-opus-4-8-v1:0") == Decimal("27.5")
    assert cost("openrouter/anthropic/claude-opus-4.8") == 25


BUG_CASE_18 = """
[[price]]
model = "claude-opus-4-8"
input = 5
cache_read = 0.5
cache_write_5m = 6.25
cache_write_1h = 10
output = 25
[[price]]
model = "claude-opus-4-8"
speed = "fast"
input = 10
cache_read = 1
cache_write_5m = 12.5
cache_write_1h = 20
output = 50
"""


def test_price_law_of_bug_case_18(tmp_path: Path) -> None:
    book = user_book(tmp_path, BUG_CASE_18)
    fast = book.cost_usd(
        "claude-opus-4-8", Tokens(100, 10_000, 1_000, 0, 1_000), at=DEC_1, speed="fast"
    )
    plain = book.cost_usd("claude-opus-4-8", Tokens(100, 11_000, 0, 0, 1_000), at=DEC_1)
    assert (fast, plain) == (Decimal("0.0735"), Decimal("0.031"))


def test_price_law_of_bug_case_42(tmp_path: Path) -> None:
    rows = []
    for tier, times in (("default", "1"), ("priority", "2"), ("flex", "0.5")):
        fresh, read, out = (Decimal(usd) * Decimal(times) for usd in ("5", "0.5", "30"))
        rows.append(
            f'[[price]]\nmodel = "gpt-5.6-sol"\nservice_tier = "{tier}"\n'
            f"input = {fresh}\ncache_read = {read}\noutput = {out}\n"
        )
    book = user_book(tmp_path, "".join(rows))
    one = Tokens(6_000, 4_000, 0, 0, 1_000)
    costs = [
        book.cost_usd("gpt-5.6-sol", one, at=DEC_1, service_tier=tier)
        for tier in (None, "priority", "flex")
    ]
    assert costs == [Decimal("0.062"), Decimal("0.124"), Decimal("0.031")]


def test_the_users_dated_file_wins(tmp_path: Path) -> None:
    book = user_book(
        tmp_path,
        """
        [[price]]
        model = "openai/GPT-5.6-luna"
        from = 2026-11-01
        input = 1
        output = 7
        [[price]]
        model = "gpt-5.6-luna"
        from = 2026-11-20
        to = 2026-11-30
        input = 1
        output = 9
        """,
    )

    def out(day: int, month: int = 11) -> Decimal | None:
        at = datetime(2026, month, day, 12, tzinfo=UTC)
        return book.cost_usd("gpt-5.6-luna", Tokens(output=1_000_000), at=at)

    assert out(31, 10) == Decimal("1.2")  # before the user's first day: the installed list
    assert out(20) == out(30) == 9
    assert book.cost_usd("gpt-5.6-luna", ONE_OF_EACH, at=None) is None


def test_without_a_day_only_an_undated_user_price_is_known(tmp_path: Path, book: PriceBook) -> None:
    mine = user_book(tmp_path, '[[price]]\nmodel = "luna"\ninput = 1\noutput = 1\n')
    assert mine.cost_usd("luna", Tokens(1_000_000), at=None) == 1
    assert mine.cost_usd("gpt-5.6-luna", Tokens(1_000_000), at=None) is None
    assert book.cost_usd("gpt-5.6-luna", Tokens(1_000_000), at=None) is None


def test_claude_cache_writes_are_a_multiple_where_a_row_omits_them(tmp_path: Path) -> None:
    book = user_book(
        tmp_path, '[[price]]\nmodel = "claude-new-9"\ninput = 2\ncache_read = 0.2\noutput = 10\n'
    )
    rates = book.rates("claude-new-9", on=date(2026, 12, 1))
    assert rates is not None
    assert (rates.cache_write_5m, rates.cache_write_1h) == (Decimal("2.5"), Decimal(4))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("price = nonsense", "not a price file"),
        ('[[price]]\nmodel = "m"\ninput = nan\noutput = 1', "finite"),
        ('[[price]]\nmodel = "m"\ninput = inf\noutput = 1', "finite"),
        ('[[price]]\nmodel = "m"\ninput = -1\noutput = 1', "negative"),
        ('[[price]]\nmodel = "m"\ninput = "1"\noutput = 1', "must be a number"),
        ('[[price]]\nmodel = "m"\ninput = true\noutput = 1', "must be a number"),
        ('[[price]]\nmodel = "m"\ninput = 1', "output is missing"),
        ("[[price]]\ninput = 1\noutput = 1", "model is missing"),
        ('[[price]]\nmodel = "m"\ninput = 1\noutput = 1\nfrom = "2026"', "must be a date"),
        ('[[price]]\nmodel = "m"\ninput = 1\noutput = 1\ncahce_read = 1', "cahce_read"),
        ('[[price]]\nmodel = "m"\ninput = 1\noutput = 1\nabove = 1.5', "whole number"),
        ('[[price]]\nmodel = "m"\ninput = 1\noutput = 1\nabove = 9', "none without it"),
        (
            '[[price]]\nmodel = "m"\ninput = 1\noutput = 1\nfrom = 2026-02-01\nto = 2026-01-01',
            "is after",
        ),
        ('[[price]]\nmodel = "m"\ninput = 1\noutput = 1\n' * 2, "two prices"),
        ("[prices]\nx = 1", "unexpected prices"),
    ],
)
def test_a_wrong_price_file_fails_closed(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(BadLog, match=says) as caught:
        user_book(tmp_path, text)
    assert "prices.toml" in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_wrong_row_is_named_by_line(tmp_path: Path) -> None:
    good = '[[price]]\nmodel = "a"\ninput = 1\noutput = 1\n'
    with pytest.raises(BadLog) as caught:
        user_book(tmp_path, good + '[[price]]\nmodel = "b"\ninput = -1\noutput = 1\n')
    assert caught.value.line == 5
    assert "price row 2 (b)" in str(caught.value)


def test_the_variable_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAMALLOC_PRICES", str(tmp_path / "gone.toml"))
    with pytest.raises(BadLog, match=r"gone\.toml"):
        PriceBook.load()


def test_the_digest_follows_the_file(tmp_path: Path, book: PriceBook) -> None:
    mine = user_book(tmp_path, BUG_CASE_18)
    assert mine.digest != book.digest
    assert mine.digest == user_book(tmp_path, BUG_CASE_18).digest


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("openai/gpt-5.6-sol", "gpt-5.6-sol"),
        ("gpt-5-6-sol", "gpt-5.6-sol"),
        ("openrouter/anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("bedrock/global.anthropic.claude-opus-4-8-v1:0", "claude-opus-4-8"),
        ("vertex_ai/claude-opus-4-1@20250805", "claude-opus-4-1"),
        ("claude-opus-5[1m]", "claude-opus-5"),
        ("claude-4.5-sonnet", "claude-sonnet-4-5"),
        ("gpt-5-2025-08-07", "gpt-5"),
        ("z-ai/glm-5.1:floor", "glm-5.1"),
        ("deepseek/deepseek-v4-pro:free", "deepseek-v4-pro:free"),
        ("claude-opus-4-6-fast", "claude-opus-4-6-fast"),
        ("Claude-Haiku-4-5-20251001", "claude-haiku-4-5"),
        ("gemini-3.1-pro-preview", "gemini-3.1-pro-preview"),
        ("", ""),
    ],
)
def test_normal_names(raw: str, name: str) -> None:
    assert normalise_model(raw) == name


@settings(deadline=None)
@given(st.text(max_size=40))
def test_a_normal_name_is_normal(raw: str) -> None:
    name = normalise_model(raw)
    assert normalise_model(name) == name
    assert not set(name) & set(" \t\r\n=*@\x00")
