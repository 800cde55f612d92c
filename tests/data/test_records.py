from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from run_strategies import a_run, runs

from teamalloc.data.plan import Plan, SeatForecast
from teamalloc.data.records import as_row, decode_plan, decode_run, encode_plan, encode_run
from teamalloc.data.run import Limits, Run
from teamalloc.data.team import parse_team
from teamalloc.errors import BadInput


@given(runs())
def test_a_run_comes_back_as_it_was(run: Run) -> None:
    assert decode_run(encode_run(run)) == run


def test_the_form_is_plain_json() -> None:
    zone = timezone(timedelta(hours=2))
    run = replace(
        a_run(), started_at=datetime(2026, 3, 1, 9, tzinfo=zone), total_reported_usd=Decimal("0.10")
    )
    record = json.loads(encode_run(run))
    assert record["started_at"] == "2026-03-01T09:00:00+02:00"
    assert record["total_reported_usd"] == "0.10"
    assert record["agents"][1]["usage"][0]["tokens"]["cache_read"] == 20
    assert record["tags"] == [["origin", "r1"]]


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_number_json_cannot_hold_is_refused(number: float) -> None:
    run = replace(a_run(), turn_starts_s=(0.0, number))
    with pytest.raises(BadInput, match=r"\$\.turn_starts_s\[1\]"):
        encode_run(run)


@pytest.mark.parametrize("amount", ["NaN", "-Infinity", "1e999999999", "\\u004eaN"])
def test_money_that_is_not_finite_is_refused_when_read(amount: str) -> None:
    body = encode_run(a_run()).replace(b'"1.25"', f'"{amount}"'.encode(), 1)
    with pytest.raises(BadInput, match="cost_list_usd must be a finite number"):
        decode_run(body)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"status":"done"', b'"status":"fine"', r"\$\.status"),
        (b'"cache_read":20', b'"cache_read":-20', "whole number of tokens"),
        (b':00Z"', b':00"', "time zone"),
        (b'"run_id":"r1"', b'"run_id":1', r"\$\.run_id"),
        (b'"active_s":100.0', b'"active_s":1e999', "out of range"),
        (b'"run_id":"r1",', b"", "run_id"),
        (b'{"run_id"', b'{"x":' + b"[" * 100_000 + b'"run_id"', "recursion"),
    ],
)
def test_a_wrong_value_is_named(old: bytes, new: bytes, message: str) -> None:
    body = encode_run(a_run())
    assert old in body
    with pytest.raises(BadInput, match=message):
        decode_run(body.replace(old, new, 1))


@pytest.mark.parametrize("body", [b"", b"[]", b"\xff\xfe", b'{"run_id":"r1"', b"null"])
def test_what_is_no_record_is_refused(body: bytes) -> None:
    with pytest.raises(BadInput, match="not a run record"):
        decode_run(body)


def test_a_string_that_is_not_text_is_refused() -> None:
    with pytest.raises(BadInput, match="not Unicode"):
        encode_run(replace(a_run(), client="\udcff"))


def test_a_plan_comes_back_as_it_was() -> None:
    forecast = SeatForecast("planner=luna*8", (0.1, 0.9), (1e3, 2e4), None, (60.0, 90.5))
    plan = Plan(
        parse_team("lead=sol@xhigh planner=luna*8 async"),
        Limits(Decimal("50"), 1800.0),
        (forecast,),
        based_on="ab12",
    )
    assert decode_plan(encode_plan(plan)) == plan


def test_a_row_adds_up_what_the_agents_used() -> None:
    row = as_row(a_run())
    assert row["cost_usd"] == Decimal("4.375")  # 1.25 * (1 + 2 + 0.5)
    assert (row["fresh_input_tok"], row["cache_read_tok"], row["output_tok"]) == (30, 60, 15)
    assert row["team"] == "lead=gpt-5.6-sol planner=gpt-5.6-luna blocking"
