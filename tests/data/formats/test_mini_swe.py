"""mini-swe-agent trajectories: the bug cases, the published samples, and each rule alone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamalloc.data.formats import Reject, Session
from teamalloc.data.formats.documents import MAX_BYTES
from teamalloc.data.formats.mini_swe import MiniSwe
from teamalloc.data.formats.usage import read_openai_usage
from teamalloc.data.run import Limits, Status, Tokens

CASES = Path(__file__).parents[2] / "logs" / "bugcases"
SHARED = os.environ.get("TEAMALLOC_SHARED")
needs_shared = pytest.mark.skipif(not SHARED, reason="TEAMALLOC_SHARED is not set")

Json = dict[str, Any]


def taken(folder: Path) -> list[Path]:
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                if MiniSwe().sniff(path, file.read(65536)):
                    found.append(path)
    return found


def read(folder: Path) -> tuple[list[Session], list[Reject]]:
    rejects: list[Reject] = []
    return list(MiniSwe().read(taken(folder), rejects.append)), rejects


def read_one(folder: Path) -> Session:
    sessions, rejects = read(folder)
    assert not rejects
    assert len(sessions) == 1
    assert [agent.agent_id for agent in sessions[0].agents] == ["lead"]
    return sessions[0]


def sum_tokens(session: Session) -> Tokens:
    total = Tokens()
    for request in session.agents[0].requests:
        assert request.tokens is not None
        total += request.tokens
    return total


# ------------------------------------------------------------------------------- writing


def spent(prompt: int, output: int, cached: int = 0, **more: Any) -> Json:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "prompt_tokens_details": {"cached_tokens": cached},
        **more,
    }


def reply(n: int, usage: Json | None, *, role: str = "assistant", **extra: Any) -> Json:
    response = {"id": f"gen-{n}", "created": 1_780_000_000 + n, "model": "m-1", "usage": usage}
    timestamp = 1_780_000_000.0 + n + 1
    return {
        "role": role,
        "content": "SECRET",
        "extra": {"response": response, "timestamp": timestamp, **extra},
    }


def trajectory(messages: Iterable[Json], **info: Any) -> Json:
    config = info.pop("config", {"model": {"model_name": "vendor/m-1"}})
    return {
        "info": {"mini_version": "2.4.6", "config": config, "exit_status": "Submitted", **info},
        "messages": [{"role": "user", "content": "t"}, *messages],
        "trajectory_format": "mini-swe-agent-1.1",
    }


def write(folder: Path, name: str, value: object) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return path


# ------------------------------------------------------------------------------- the bug cases


@pytest.mark.parametrize(
    ("case", "cost"),
    [("37-cached-at-full-price", None), ("39-explicit-zero-is-known", Decimal(0))],
)
def test_bug_case(case: str, cost: Decimal | None) -> None:
    totals = json.loads((CASES / case / "expected.json").read_text())["expected"]["totals"]
    session = read_one(CASES / case / "input")
    requests = session.agents[0].requests
    assert sum_tokens(session) == Tokens(
        totals["input"],
        totals["cache_read"],
        totals["cache_write_5m"],
        totals["cache_write_1h"],
        totals["output"],
    )
    assert len(requests) == totals["requests"]
    assert {request.cost_reported_usd for request in requests} == {cost}
    assert session.total_reported_usd is None
    assert session.task == "demo__demo-1"
    assert session.status == "done"
    assert session.limits == Limits(budget_usd=Decimal("3.0"))


# ------------------------------------------------------------------------------- usage


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (spent(100, 10), Tokens(100, 0, 0, 0, 10)),
        (spent(100, 10, 60), Tokens(40, 60, 0, 0, 10)),
        ({"prompt_tokens": 100, "completion_tokens": 10}, Tokens(100, 0, 0, 0, 10)),
        ({**spent(100, 10), "prompt_tokens_details": None}, Tokens(100, 0, 0, 0, 10)),
        # Anthropic through LiteLLM: reads and writes are parts of the prompt
        (spent(100, 10, 60, cache_creation_input_tokens=30), Tokens(10, 60, 30, 0, 10)),
        # … or stand beside it, which the total proves
        (
            spent(10, 10, 60, cache_creation_input_tokens=30, total_tokens=110),
            Tokens(10, 60, 30, 0, 10),
        ),
        (spent(10, 10, 60), Tokens(10, 60, 0, 0, 10)),
        # reasoning beside the output, which the total proves; inside it else
        (
            spent(100, 10, total_tokens=117, completion_tokens_details={"reasoning_tokens": 7}),
            Tokens(100, 0, 0, 0, 17),
        ),
        (
            spent(100, 10, total_tokens=110, completion_tokens_details={"reasoning_tokens": 7}),
            Tokens(100, 0, 0, 0, 10),
        ),
        # one-hour writes are a part of the writes
        (
            {
                **spent(100, 10),
                "prompt_tokens_details": {
                    "cached_tokens": 0,
                    "cache_creation_tokens": 50,
                    "cache_creation_token_details": {"ephemeral_1h_input_tokens": 20},
                },
            },
            Tokens(50, 0, 30, 20, 10),
        ),
        # the responses API
        (
            {
                "input_tokens": 100,
                "output_tokens": 10,
                "input_tokens_details": {"cached_tokens": 60},
            },
            Tokens(40, 60, 0, 0, 10),
        ),
    ],
)
def test_usage(usage: Json, tokens: Tokens) -> None:
    assert read_openai_usage(usage) == tokens


@pytest.mark.parametrize(
    "usage",
    [
        {},
        {"prompt_tokens": 5},
        spent(-1, 1),
        {**spent(1, 1), "completion_tokens": "many"},
        {**spent(1, 1), "completion_tokens": True},
        spent(50, 10, 60, total_tokens=60),  # a part larger than the whole
    ],
)
def test_wrong_usage_is_unknown_and_reported(tmp_path: Path, usage: Json) -> None:
    path = write(tmp_path, "a.traj.json", trajectory([reply(1, usage), reply(2, spent(9, 1))]))
    (session,), rejects = read(tmp_path)
    assert [request.tokens for request in session.agents[0].requests] == [
        None,
        Tokens(9, 0, 0, 0, 1),
    ]
    assert [reject.path for reject in rejects] == [path]
    assert "model call 1" in rejects[0].reason
    assert not session.agents[0].usage_missing


@given(*[st.integers(0, 10**6)] * 4)
def test_usage_adds_up(fresh: int, read_: int, written: int, output: int) -> None:
    prompt = fresh + read_ + written
    usage = spent(
        prompt, output, read_, cache_creation_input_tokens=written, total_tokens=prompt + output
    )
    tokens = read_openai_usage(usage)
    assert tokens == Tokens(fresh, read_, written, 0, output)


# ------------------------------------------------------------------------------- calls


def test_a_reply_that_could_not_be_parsed_was_billed(tmp_path: Path) -> None:
    complaint = reply(2, spent(50, 5), role="user", interrupt_type="FormatError")
    write(tmp_path, "a.traj.json", trajectory([reply(1, spent(10, 1)), complaint]))
    assert sum_tokens(read_one(tmp_path)) == Tokens(60, 0, 0, 0, 6)


def test_the_same_response_twice_counts_once(tmp_path: Path) -> None:
    first = reply(1, spent(10, 1))
    # a gateway's placeholder id on another response is no repetition
    other = reply(2, spent(30, 3))
    other["extra"]["response"]["id"] = "gen-1"
    write(tmp_path, "a.traj.json", trajectory([first, first, other]))
    assert sum_tokens(read_one(tmp_path)) == Tokens(40, 0, 0, 0, 4)


def test_a_copy_is_the_same_run_and_a_second_attempt_is_not(tmp_path: Path) -> None:
    one, two = trajectory([reply(1, spent(10, 1))]), trajectory([reply(70, spent(10, 1))])
    two["messages"][1]["extra"]["response"]["id"] = "gen-1"  # a local server counts from 1
    for name, value in (("a/x", one), ("b/x", one), ("c/x", two)):
        write(tmp_path, f"{name}.traj.json", value)
    a, b, c = read(tmp_path)[0]
    assert a.session_id == b.session_id != c.session_id
    keys = [session.agents[0].requests[0].key for session in (a, b, c)]
    assert keys[0] == keys[1] != keys[2]


def test_messages_that_are_responses_themselves(tmp_path: Path) -> None:
    message = {
        "object": "response",
        "id": "resp_1",
        "created_at": 1_780_000_000.5,
        "model": "m-1",
        "usage": {"input_tokens": 100, "output_tokens": 10},
        "extra": {"cost": 0.25, "timestamp": 1_780_000_004.5},
    }
    write(tmp_path, "a.traj.json", trajectory([message]))
    session = read_one(tmp_path)
    (request,) = session.agents[0].requests
    assert request.tokens == Tokens(100, 0, 0, 0, 10)
    assert request.cost_reported_usd == Decimal("0.25")
    assert request.at == datetime.fromtimestamp(1_780_000_004.5, UTC)
    assert session.active_s == 4.0


@pytest.mark.parametrize(
    ("billed", "worked_out", "tracking", "cost"),
    [
        (0.5, 0.7, "default", Decimal("0.5")),
        (0.0, 0.7, "ignore_errors", Decimal(0)),
        (None, 0.7, "ignore_errors", Decimal("0.7")),
        (None, 0.0, "ignore_errors", None),
        (None, 0.0, "default", Decimal(0)),
        (None, 0.0, None, None),
        (None, None, "default", None),
        (-1.0, None, "default", None),
    ],
)
def test_cost_of_a_call(
    tmp_path: Path,
    billed: float | None,
    worked_out: float | None,
    tracking: str | None,
    cost: Decimal | None,
) -> None:
    config = {"model": {"model_name": "m", "cost_tracking": tracking}}
    call = reply(1, spent(10, 1, cost=billed), cost=worked_out)
    write(tmp_path, "a.traj.json", trajectory([call], config=config))
    assert read_one(tmp_path).agents[0].requests[0].cost_reported_usd == cost


def test_a_total_counts_only_where_no_call_has_a_cost(tmp_path: Path) -> None:
    stats = {"instance_cost": 1.25, "api_calls": 1}
    first = trajectory([reply(1, spent(10, 1))], model_stats=stats)
    write(tmp_path, "a.traj.json", {**first, "trajectory_format": "mini-swe-agent-1"})
    assert read_one(tmp_path).total_reported_usd == Decimal("1.25")
    write(tmp_path, "a.traj.json", trajectory([reply(1, None, cost=0.5)], model_stats=stats))
    assert read_one(tmp_path).total_reported_usd is None


def test_responses_without_usage(tmp_path: Path) -> None:
    told = {"role": "assistant", "extra": {"response": "ModelResponse(id='x')", "cost": 0.5}}
    write(tmp_path, "a.traj.json", trajectory([told, {"role": "assistant", "content": "b"}]))
    (lead,) = read_one(tmp_path).agents
    assert lead.usage_missing
    assert [(r.tokens, r.cost_reported_usd) for r in lead.requests] == [
        (None, Decimal("0.5")),
        (None, None),
    ]


@pytest.mark.parametrize(
    ("exit_status", "status"),
    [
        ("Submitted", "done"),
        ("LimitsExceeded", "over_budget"),
        ("TimeExceeded", "timed_out"),
        ("TimeLimitExceeded", "timed_out"),
        ("UserInterruption", "cancelled"),
        ("RuntimeError", "failed"),
        ("", "unknown"),
        (None, "unknown"),
    ],
)
def test_status(tmp_path: Path, exit_status: str | None, status: Status) -> None:
    write(tmp_path, "a.traj.json", trajectory([reply(1, None)], exit_status=exit_status))
    assert read_one(tmp_path).status == status


def test_what_a_session_says(tmp_path: Path) -> None:
    config = {
        "agent": {"cost_limit": 2.5, "wall_time_limit_seconds": 60},
        "model": {"model_name": "vendor/m-1", "model_kwargs": {"reasoning_effort": "low"}},
    }
    messages = [reply(1, spent(10, 1)), reply(9, spent(20, 2))]
    write(tmp_path, "x__y-1/x__y-1.traj.json", trajectory(messages, config=config))
    session = read_one(tmp_path)
    lead = session.agents[0]
    assert session.task == "x__y-1"
    assert session.limits == Limits(Decimal("2.5"), 60.0)
    assert session.active_s == 9.0  # from the creation of the first response
    assert lead.intervals == [(session.started_at, session.ended_at)]
    assert lead.asked_model == "vendor/m-1"
    assert {(r.model, r.effort) for r in lead.requests} == {("m-1", "low")}
    assert session.client_version == "2.4.6"
    assert "SECRET" not in repr(session)


# ------------------------------------------------------------------------------- scores


def listed(*statuses: str, prefix: str = "eval.") -> list[Json]:
    return [
        {"name": f"{prefix}tests.t{n}", "branch": "b", "status": status}
        for n, status in enumerate(statuses)
    ]


@pytest.mark.parametrize(
    ("evaluation", "reward"),
    [
        ({"test_results": listed("passed", "failure", "error", "passed")}, 0.5),
        ({"test_results": listed("passed", "skipped")}, 1.0),
        ({"test_results": listed("passed", "not_run")}, 0.5),
        # one test listed under two paths, run under one of them
        ({"test_results": listed("passed") + listed("not_run", prefix="")}, 1.0),
        ({"test_results": listed("passed"), "error_code": "compile_failed"}, 0.0),
    ],
)
def test_program_bench(tmp_path: Path, evaluation: Json, reward: float) -> None:
    write(tmp_path, "x/x.traj.json", trajectory([reply(1, None)]))
    before = read_one(tmp_path)
    assert (before.reward, before.reward_source) == (None, None)
    companion = write(tmp_path, "x/x.eval.json", evaluation)
    assert companion in taken(tmp_path)
    session = read_one(tmp_path)
    assert (session.reward, session.reward_source) == (reward, "log")
    assert session.session_id == before.session_id
    assert session.digest != before.digest  # a score that comes later is seen


@pytest.mark.parametrize(
    ("name", "report", "reward"),
    [
        ("run/x/report.json", {"x": {"resolved": True}}, 1.0),
        ("run/x/report.json", {"x": {"resolved": False}}, 0.0),
        ("run/report.json", {"resolved_ids": ["x"], "submitted_ids": ["x", "y"]}, 1.0),
        ("run/report.json", {"resolved_ids": [], "submitted_ids": ["x"]}, 0.0),
        ("run/report.json", {"resolved_ids": [], "submitted_ids": ["y"]}, None),
        ("run/report.json", {"other": "report"}, None),
    ],
)
def test_swe_bench(tmp_path: Path, name: str, report: Json, reward: float | None) -> None:
    write(tmp_path, "run/x/x.traj.json", trajectory([reply(1, None)]))
    write(tmp_path, name, report)
    assert read_one(tmp_path).reward == reward


def test_a_score_of_the_trajectory_itself(tmp_path: Path) -> None:
    write(tmp_path, "x.traj.json", trajectory([reply(1, None)], resolved=True))
    assert read_one(tmp_path).reward == 1.0
    write(tmp_path, "x.traj.json", trajectory([reply(1, None)], score=17))
    assert read_one(tmp_path).reward is None


@pytest.mark.parametrize(
    "body",
    ["{", "[]", "{}", '{"test_results": []}', '{"test_results": [], "test_results_omitted": 3}'],
)
def test_a_damaged_score_costs_the_reward_only(tmp_path: Path, body: str) -> None:
    write(tmp_path, "x.traj.json", trajectory([reply(1, spent(10, 1))]))
    (tmp_path / "x.eval.json").write_text(body)
    (session,), rejects = read(tmp_path)
    assert session.reward is None
    assert [reject.path.name for reject in rejects] == ["x.eval.json"]


# ------------------------------------------------------------------------------- files


@pytest.mark.parametrize(
    "body", ["", "[", '{"info": {}, "messages"', '{"info": 1}', '{"info":[[[1']
)
def test_a_file_that_is_no_trajectory(tmp_path: Path, body: str) -> None:
    path = tmp_path / "x.traj.json"
    path.write_text(body)
    rejects: list[Reject] = []
    assert list(MiniSwe().read([path], rejects.append)) == []
    assert [reject.path for reject in rejects] == [path]


def test_a_file_too_large_to_hold(tmp_path: Path) -> None:
    path = tmp_path / "x.traj.json"
    path.touch()
    os.truncate(path, MAX_BYTES + 1)  # sparse: takes no room
    rejects: list[Reject] = []
    assert list(MiniSwe().read([path], rejects.append)) == []
    assert f"larger than {MAX_BYTES}" in rejects[0].reason


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    rejects: list[Reject] = []
    assert list(MiniSwe().read([tmp_path / "gone.traj.json"], rejects.append)) == []
    assert "cannot be read" in rejects[0].reason


def test_not_a_number_is_no_damage(tmp_path: Path) -> None:
    write(tmp_path, "x.traj.json", trajectory([reply(1, spent(10, 1), cost=float("nan"))]))
    (request,) = read_one(tmp_path).agents[0].requests
    assert request.cost_reported_usd is None
    assert request.tokens == Tokens(10, 0, 0, 0, 1)


@pytest.mark.parametrize(
    ("name", "head", "is_ours"),
    [
        ("x.traj.json", b'{"info": {"config": {}}', True),
        ("x.traj.json", b'[{"role": "system"', True),
        ("trajectory.json", b'{"info": {"mini_version": "2.4"', True),
        ("trajectory.json", b'{"schema_version": "ATIF-v1.5"', False),
        ("x.traj", b'{"trajectory": [], "info": {}', False),
        ("x.traj.json", b"\x89PNG\r\n", False),
        ("x.eval.json", b'{"test_results": []}', False),  # no trajectory beside it
        ("report.json", b"{}", False),
    ],
)
def test_sniff(tmp_path: Path, name: str, head: bytes, is_ours: bool) -> None:
    assert MiniSwe().sniff(tmp_path / name, head) is is_ours


def test_companions_are_taken_and_hold_no_run(tmp_path: Path) -> None:
    write(tmp_path, "run/x/x.traj.json", trajectory([reply(1, None)]))
    write(tmp_path, "run/preds.json", {"x": {"model_patch": "SECRET"}})
    write(tmp_path, "run/exit_statuses_1.yaml", {})
    assert len(taken(tmp_path)) == 3
    read_one(tmp_path)


# ------------------------------------------------------------------------------- samples


@needs_shared
def test_published_samples() -> None:
    sessions, rejects = read(Path(SHARED or "") / "samples" / "mini_swe_agent")
    assert rejects == []
    v0, v0_too, lua = sessions
    for session in (v0, v0_too):
        assert session.agents[0].usage_missing
        assert all(request.tokens is None for request in session.agents[0].requests)
        assert (session.active_s, session.started_at) == (None, None)
    assert sum_tokens(lua) == Tokens(506_816, 2_198_327, 0, 0, 39_336)
    assert len(lua.agents[0].requests) == 90
    reported = [r.cost_reported_usd for r in lua.agents[0].requests]
    charged = sum(cost for cost in reported if cost is not None)
    assert float(charged) == pytest.approx(1.3879542)  # info.model_stats.instance_cost
    assert reported.count(None) == 1  # what the agent forgot to charge
    assert lua.active_s == pytest.approx(418.047, abs=0.001)
    assert lua.task == "lua__lua.c6b4848"


@needs_shared
def test_files_of_the_real_client() -> None:
    sessions, rejects = read(Path(SHARED or "") / "samples" / "real-clients")
    assert rejects == []
    assert [session.status for session in sessions] == ["done"] * 4
    assert [session.agents[0].usage_missing for session in sessions] == [True, True, False, False]
    luna = sessions[2]
    assert sum_tokens(luna) == Tokens(64, 63, 0, 0, 120)
    costs = [request.cost_reported_usd for request in luna.agents[0].requests]
    assert sum(cost for cost in costs if cost is not None) == Decimal("0.00015806")


@needs_shared
def test_evaluations_of_the_benchmark(tmp_path: Path) -> None:
    samples = Path(SHARED or "") / "samples" / "programbench"
    for name, reward in (("correct", 1.0), ("incorrect", 0.0)):
        evaluation = next((samples / name).rglob("*.eval.json"))
        folder = tmp_path / name
        write(folder, f"{evaluation.name.removesuffix('.eval.json')}.traj.json", trajectory([]))
        (folder / evaluation.name).write_bytes(evaluation.read_bytes())
        session = read_one(folder)
        assert session.reward == reward
        assert session.task == "testorg__calculator.abc1234"
