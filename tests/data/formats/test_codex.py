"""Codex rollouts: the bug cases, the published samples, and each rule alone by hand."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teamalloc.data.formats import AgentTrace, Reject, Session
from teamalloc.data.formats.codex import Codex
from teamalloc.data.run import Tokens

CASES = Path(__file__).parents[2] / "logs" / "bugcases"
SHARED = os.environ.get("TEAMALLOC_SHARED")
needs_shared = pytest.mark.skipif(not SHARED, reason="TEAMALLOC_SHARED is not set")

Row = dict[str, Any]
ROOT = "019f9000-0000-7000-8000-000000000001"
CHILD = "019f9000-1111-7000-8000-000000000002"
OTHER = "019f9000-2222-7000-8000-000000000003"


# ------------------------------------------------------------------------------- reading


def taken(folder: Path) -> list[Path]:
    """The files below a folder that are sniffed."""
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                if Codex().sniff(path, file.read(65536)):
                    found.append(path)
    return found


def read(folder: Path) -> tuple[list[Session], list[Reject]]:
    rejects: list[Reject] = []
    return list(Codex().read(taken(folder), rejects.append)), rejects


def read_one(folder: Path) -> Session:
    sessions, rejects = read(folder)
    assert not rejects
    assert len(sessions) == 1
    return sessions[0]


def sum_tokens(traces: Iterable[AgentTrace]) -> Tokens:
    total = Tokens()
    for trace in traces:
        for request in trace.requests:
            assert request.tokens is not None
            total += request.tokens
    return total


def span_s(session: Session) -> float:
    assert session.started_at is not None
    assert session.ended_at is not None
    return (session.ended_at - session.started_at).total_seconds()


# ------------------------------------------------------------------------------- writing


def at(seconds: float) -> str:
    instant = datetime(2026, 7, 1, 10, tzinfo=UTC) + timedelta(seconds=seconds)
    return instant.isoformat().replace("+00:00", "Z")


def row(seconds: float, kind: str, ordinal: int | None = None, **payload: Any) -> Row:
    found: Row = {"timestamp": at(seconds), "type": kind, "payload": payload}
    return found if ordinal is None else {**found, "ordinal": ordinal}


def head(seconds: float, thread: str = ROOT, **payload: Any) -> Row:
    return row(seconds, "session_meta", id=thread, cli_version="0.150.0", **payload)


def spawned(parent: str = ROOT, **spawn: Any) -> Row:
    return {"subagent": {"thread_spawn": {"parent_thread_id": parent, "depth": 1, **spawn}}}


def context(seconds: float, turn: str | None = None, model: str = "gpt-5.6-sol") -> Row:
    return row(seconds, "turn_context", turn_id=turn, model=model, effort="high")


def usage(fresh: int, cached: int, output: int, written: int = 0) -> Row:
    return {
        "input_tokens": fresh + cached + written,
        "cached_input_tokens": cached,
        "cache_write_input_tokens": written,
        "output_tokens": output,
        "total_tokens": fresh + cached + written + output,
    }


def count(seconds: float, total: Row, last: Row | None = None) -> Row:
    info = {"total_token_usage": total, "last_token_usage": last or total}
    return row(seconds, "event_msg", type="token_count", info=info)


def event(seconds: float, kind: str, **payload: Any) -> Row:
    return row(seconds, "event_msg", type=kind, **payload)


def call(seconds: float, name: str, **payload: Any) -> Row:
    return row(seconds, "response_item", type="function_call", name=name, **payload)


def record(seconds: float, response: str, spent: Row, thread: str = ROOT, turn: str = "t") -> Row:
    return row(
        seconds,
        "token_usage_record",
        thread_id=thread,
        turn_id=turn,
        response_id=response,
        usage=spent,
    )


def write(folder: Path, name: str, rows: Sequence[Row]) -> Path:
    path = folder / "sessions" / "2026" / "07" / "01" / f"rollout-2026-07-01T10-00-00-{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


# ------------------------------------------------------------------------------- the bug cases

RUN_CASES = (
    "26-codex-reemitted-token-count",
    "27-codex-compaction-estimate-row",
    "29-codex-child-counter-starts-at-zero",
    "30-codex-subagent-replay-ordinal",
    "33-reasoning-inside-output",
    "35-codex-archived-copy",
)


def expected_tokens(totals: Mapping[str, Any]) -> Tokens:
    return Tokens(
        totals["input"],
        totals["cache_read"],
        totals["cache_write_5m"],
        totals["cache_write_1h"],
        totals["output"],
    )


@pytest.mark.parametrize("case", RUN_CASES)
def test_bug_case(case: str) -> None:
    expected = json.loads((CASES / case / "expected.json").read_text())["expected"]
    sessions, rejects = read(CASES / case / "input")
    agents = [agent for session in sessions for agent in session.agents]
    assert rejects == []
    assert sum_tokens(agents) == expected_tokens(expected["totals"])
    assert sum(len(agent.requests) for agent in agents) == expected["totals"]["requests"]
    assert len(sessions) == expected.get("sessions", 1)
    if "wall_s" in expected:
        assert span_s(sessions[0]) == pytest.approx(expected["wall_s"])
    for wanted, agent in zip(expected.get("agents", []), agents, strict=bool("agents" in expected)):
        is_lead = wanted["role"] == "lead"
        assert agent.agent_id == ("lead" if is_lead else wanted["id"])
        assert agent.label == (None if is_lead else wanted["role"])
        assert agent.parent_id == (None if is_lead else "lead")
        assert {request.model for request in agent.requests} == {wanted["model"]}
        assert sum_tokens([agent]) == expected_tokens(wanted["totals"])
        assert len(agent.requests) == wanted["totals"]["requests"]
        if "end" in wanted:
            assert agent.started_at == datetime.fromisoformat(wanted["start"])
            assert agent.intervals[-1][1] == datetime.fromisoformat(wanted["end"])


def test_usage_that_was_never_logged_is_missing() -> None:
    session = read_one(CASES / "36-missing-usage-is-unknown" / "input")
    (lead,) = session.agents
    assert lead.usage_missing
    assert lead.requests == []
    assert span_s(session) == pytest.approx(5.1)


def test_the_archived_copy_has_the_keys_of_the_active_one() -> None:
    folder = CASES / "35-codex-archived-copy" / "input"
    archived = read(folder / "archived_sessions")[0]
    both = read(folder)[0]
    assert [s.session_id for s in archived] == [s.session_id for s in both]
    assert [s.digest for s in archived] == [s.digest for s in both]
    keys = [[r.key for a in s.agents for r in a.requests] for s in (*archived, *both)]
    assert keys[:2] == keys[2:]


# ------------------------------------------------------------------------------- counting


def test_a_counter_that_fell_was_reset(tmp_path: Path) -> None:
    rows = [
        head(0),
        context(0, "t1"),
        count(1, usage(100, 0, 10)),
        count(2, usage(160, 0, 15), usage(60, 0, 5)),
        count(3, usage(70, 30, 5)),  # a new counter: 70 + 30, 5
        count(4, usage(75, 130, 6), usage(5, 100, 1)),
    ]
    write(tmp_path, ROOT, rows)
    (lead,) = read_one(tmp_path).agents
    assert [r.tokens for r in lead.requests] == [
        Tokens(100, 0, 0, 0, 10),
        Tokens(60, 0, 0, 0, 5),
        Tokens(70, 30, 0, 0, 5),
        Tokens(5, 100, 0, 0, 1),
    ]


def test_a_total_without_last_is_taken_as_it_is(tmp_path: Path) -> None:
    rows = [head(0), count(1, usage(100, 20, 10)), count(2, usage(150, 80, 30))]
    for r in rows[1:]:
        del r["payload"]["info"]["last_token_usage"]
    write(tmp_path, ROOT, rows)
    (lead,) = read_one(tmp_path).agents
    assert [r.tokens for r in lead.requests] == [
        Tokens(100, 20, 0, 0, 10),
        Tokens(50, 60, 0, 0, 20),
    ]
    assert lead.requests[0].model is None


def test_cache_writes_are_a_part_of_the_input(tmp_path: Path) -> None:
    write(tmp_path, ROOT, [head(0), count(1, usage(100, 20, 10, written=7))])
    (lead,) = read_one(tmp_path).agents
    assert lead.requests[0].tokens == Tokens(100, 20, 7, 0, 10)


def test_a_part_larger_than_the_whole_is_unknown(tmp_path: Path) -> None:
    wrong = {**usage(1, 1, 1), "cached_input_tokens": 9}
    path = write(tmp_path, ROOT, [head(0), count(1, wrong)])
    (session,), rejects = read(tmp_path)
    assert [r.tokens for r in session.agents[0].requests] == [None]
    assert [(r.path, r.line) for r in rejects] == [(path, 2)]
    assert "9 cached tokens are more than the 2" in rejects[0].reason


@pytest.mark.parametrize("value", [-5, "12", 1.5, True, None])
def test_a_number_that_is_none_costs_its_row_only(tmp_path: Path, value: object) -> None:
    wrong = {**usage(50, 0, 5), "output_tokens": value}
    write(tmp_path, ROOT, [head(0), count(1, wrong, wrong), count(2, usage(90, 0, 9))])
    (session,), rejects = read(tmp_path)
    assert [r.tokens for r in session.agents[0].requests] == [Tokens(90, 0, 0, 0, 9)]
    assert {r.line for r in rejects} == {2}


def test_records_come_before_running_totals(tmp_path: Path) -> None:
    rows = [
        head(0),
        event(0, "task_started", turn_id="t1"),
        context(0, "t1"),
        count(1, usage(40, 0, 4)),  # an older client's turn
        event(2, "task_complete", turn_id="t1"),
        event(3, "task_started", turn_id="t2"),
        context(3, "t2", "gpt-5.6-luna"),
        record(4, "r1", usage(10, 5, 1), turn="t2"),
        count(4.1, usage(50, 5, 5), usage(10, 5, 1)),
        record(5, "r1", usage(10, 5, 1), turn="t2"),  # the same response again
        record(6, "x9", usage(999, 0, 9), thread=OTHER),  # copied from another thread
    ]
    write(tmp_path, ROOT, rows)
    (lead,) = read_one(tmp_path).agents
    assert [(r.model, r.tokens) for r in lead.requests] == [
        ("gpt-5.6-sol", Tokens(40, 0, 0, 0, 4)),
        ("gpt-5.6-luna", Tokens(10, 5, 0, 0, 1)),
    ]
    assert lead.requests[1].key == f"codex:{ROOT}:r1"


def test_a_thread_that_goes_on_in_another_file(tmp_path: Path) -> None:
    first = [head(0), context(0, "t1"), count(1, usage(100, 0, 10))]
    seeded = [head(9), context(9, "t2"), count(10, usage(100, 0, 10), usage(100, 0, 10))]
    more = [count(11, usage(130, 0, 15), usage(30, 0, 5))]
    write(tmp_path, ROOT, first)
    write(tmp_path, f"{ROOT}_1", [*seeded, *more])
    (lead,) = read_one(tmp_path).agents
    assert [r.tokens for r in lead.requests] == [
        Tokens(100, 0, 0, 0, 10),
        Tokens(30, 0, 0, 0, 5),
    ]


usages = st.builds(usage, *[st.integers(0, 10_000)] * 3)
counters = st.lists(st.tuples(usages, st.integers(0, 3)), min_size=1, max_size=12)


def running(spent: Iterable[tuple[Row, int]], start: Row | None = None) -> list[Row]:
    """Rows of a running total; each is written again so many times."""
    total, rows, n = start or usage(0, 0, 0), [], 0
    for last, n_more in spent:
        total = {key: total[key] + last[key] for key in total}
        for _ in range(n_more + 1):
            n += 1
            rows.append(count(n, dict(total), last))
    return rows


@given(spent=counters)
def test_the_requests_add_up_to_the_last_total(
    tmp_path_factory: pytest.TempPathFactory, spent: list[tuple[Row, int]]
) -> None:
    folder = tmp_path_factory.mktemp("codex")
    rows = running(spent)
    write(folder, ROOT, [head(0), context(0, "t"), *rows])
    total = rows[-1]["payload"]["info"]["total_token_usage"]
    found = sum_tokens(read_one(folder).agents)
    assert found.prompt == total["input_tokens"]
    assert found.cache_read == total["cached_input_tokens"]
    assert found.output == total["output_tokens"]


# ------------------------------------------------------------------------------- copied history


@given(spent=counters, own=counters, restarts=st.booleans(), data=st.data())
def test_a_fork_counts_what_it_did_itself(
    tmp_path_factory: pytest.TempPathFactory,
    spent: list[tuple[Row, int]],
    own: list[tuple[Row, int]],
    restarts: bool,
    data: st.DataObject,
) -> None:
    # The next response of the fork is not the one the parent got at that place.
    own = [({**own[0][0], "output_tokens": 20_001, "total_tokens": 20_001}, 0), *own[1:]]
    history = running([(usage(1, 1, 1), 0), *spent])
    n_copied = data.draw(st.integers(1, len(history)))
    base = history[n_copied - 1]["payload"]["info"]["total_token_usage"]
    folder = tmp_path_factory.mktemp("codex")
    write(folder, ROOT, [head(0), context(0, "t"), *history])
    fork = [head(50, OTHER, forked_from_id=ROOT), context(50, "t"), *history[:n_copied]]
    fork += [context(60, "u", "gpt-5.6-luna"), *running(own, None if restarts else base)]
    write(folder, OTHER, fork)
    sessions = {session.session_id: session for session in read(folder)[0]}
    assert (
        sum_tokens(sessions[ROOT].agents).output
        == history[-1]["payload"]["info"]["total_token_usage"]["output_tokens"]
    )
    assert sum_tokens(sessions[OTHER].agents).output == sum(s["output_tokens"] for s, _ in own)
    assert {r.model for r in sessions[OTHER].agents[0].requests} == {"gpt-5.6-luna"}


def test_the_earlier_of_two_forks_owns_a_history_whose_file_is_gone(tmp_path: Path) -> None:
    history = running([(usage(10, 0, 1), 0), (usage(20, 0, 2), 1)])
    for n, thread in enumerate((CHILD, OTHER)):
        own = count(90 + n, usage(35 + n, 0, 5), usage(5 + n, 0, 2))
        write(tmp_path, thread, [head(n, thread, forked_from_id=ROOT), *history, own])
    sessions, _ = read(tmp_path)
    assert [sum_tokens(s.agents).fresh_input for s in sessions] == [35, 6]


def test_a_fork_without_its_parent_begins_with_its_first_own_turn(tmp_path: Path) -> None:
    fork = "019f9005-0000-7000-8000-00000000000a"
    rows = [
        head(50, fork, forked_from_id=ROOT),
        head(50, ROOT),
        event(50, "task_started", turn_id="019f9001-0000-7000-8000-00000000000b"),
        context(50, "019f9001-0000-7000-8000-00000000000b"),
        count(50, usage(100, 0, 10)),
        event(60, "task_started", turn_id="019f9006-0000-7000-8000-00000000000c"),
        context(60, "019f9006-0000-7000-8000-00000000000c", "gpt-5.6-luna"),
        count(70, usage(107, 0, 11), usage(7, 0, 1)),
    ]
    write(tmp_path, fork, rows)
    session = read_one(tmp_path)
    assert sum_tokens(session.agents) == Tokens(7, 0, 0, 0, 1)
    assert span_s(session) == 10
    write(tmp_path, fork, rows[:5])  # opened, and never used
    assert read(tmp_path) == ([], [])


def test_history_that_stays_in_the_other_file_is_not_skipped(tmp_path: Path) -> None:
    base = {"thread_id": ROOT, "end_ordinal_exclusive": 4, "end_byte_offset": 900}
    rows = [
        {**head(50, OTHER, forked_from_id=ROOT, history_base=base), "ordinal": 4},
        {**context(51, "k"), "ordinal": 5},
        {**count(52, usage(160, 0, 40), usage(120, 0, 30)), "ordinal": 6},
    ]
    write(tmp_path, OTHER, rows)
    assert sum_tokens(read_one(tmp_path).agents) == Tokens(120, 0, 0, 0, 30)


def test_like_ids_in_two_folders_are_two_threads(tmp_path: Path) -> None:
    for n, home in enumerate(("a", "b"), 1):
        write(tmp_path / home, "parent", [head(0, "parent"), count(1, usage(n, 0, 0))])
        child = head(2, "child", source=spawned("parent"), session_id="parent")
        write(tmp_path / home, "child", [child, count(3, usage(10 * n, 0, 0))])
    sessions, _ = read(tmp_path)
    assert sorted(sum_tokens(s.agents).fresh_input for s in sessions) == [11, 22]
    assert len({session.session_id for session in sessions}) == 2


# ------------------------------------------------------------------------------- the tree


def test_agents_of_a_root_whose_file_is_gone(tmp_path: Path) -> None:
    child = head(1, CHILD, source=spawned(agent_role="worker"), session_id=ROOT)
    nested = head(2, OTHER, source=spawned(CHILD, agent_path="/home/me/look"), session_id=ROOT)
    write(tmp_path, CHILD, [child, context(1, "u"), count(5, usage(10, 0, 1))])
    write(tmp_path, OTHER, [nested, context(2, "v"), count(4, usage(20, 0, 2))])
    session = read_one(tmp_path)
    lead, worker, look = session.agents
    assert session.session_id == ROOT
    assert lead.usage_missing
    assert lead.requests == []
    assert (worker.parent_id, worker.label) == ("lead", "worker")
    assert (look.parent_id, look.label) == (CHILD, "look")
    assert sum_tokens(session.agents) == Tokens(30, 0, 0, 0, 3)


@pytest.mark.parametrize("service", ["review", "compact", {"other": "guardian"}])
def test_services_are_overhead_of_the_lead(tmp_path: Path, service: object) -> None:
    write(tmp_path, ROOT, [head(0), context(0, "t"), count(5, usage(10, 0, 1))])
    rows = [head(1, CHILD, source={"subagent": service}, parent_thread_id=ROOT)]
    rows += [context(1, "g", "codex-auto-review"), count(2, usage(4, 0, 2))]
    write(tmp_path, CHILD, rows)
    (lead,) = read_one(tmp_path).agents
    assert [(r.model, r.tokens) for r in lead.requests] == [
        ("gpt-5.6-sol", Tokens(10, 0, 0, 0, 1)),
        ("codex-auto-review", Tokens(4, 0, 0, 0, 2)),
    ]


def test_the_model_that_was_asked_for(tmp_path: Path) -> None:
    asked = {"task_name": "look", "message": "SECRET", "model": "gpt-5.6-luna"}
    lead = [
        head(0),
        context(0, "t"),
        call(1, "spawn_agent", arguments=json.dumps(asked), call_id="c1"),
        call(2, "spawn_agent", arguments=json.dumps({"model": "gpt-6-luna"}), call_id="c2"),
        row(
            3,
            "response_item",
            type="function_call_output",
            call_id="c2",
            output=json.dumps({"agent_id": OTHER}),
        ),
        count(4, usage(10, 0, 1)),
    ]
    write(tmp_path, ROOT, lead)
    write(tmp_path, CHILD, [head(1, CHILD, source=spawned(agent_path="/root/look")), context(1)])
    write(tmp_path, OTHER, [head(2, OTHER, source=spawned(agent_nickname="Euler")), context(2)])
    session = read_one(tmp_path)
    helpers = session.agents[1:]
    assert [h.asked_model for h in helpers] == ["gpt-5.6-luna", "gpt-6-luna"]
    assert [h.label for h in helpers] == ["/root/look", "Euler"]
    assert session.agents[0].n_tools == 2
    assert "SECRET" not in repr(session)


def test_threads_that_point_at_each_other_end(tmp_path: Path) -> None:
    for thread, parent in ((CHILD, OTHER), (OTHER, CHILD)):
        rows = [head(0, thread, source=spawned(parent)), context(0), count(1, usage(3, 0, 1))]
        write(tmp_path, thread, rows)
    agents = [agent for session in read(tmp_path)[0] for agent in session.agents]
    assert sum_tokens(agents) == Tokens(6, 0, 0, 0, 2)


# ------------------------------------------------------------------------------- work and turns


def test_edits_and_commands(tmp_path: Path) -> None:
    patched = {"type": "FileChange", "id": "p3", "status": "failed"}
    rows = [
        head(0),
        context(0),
        call(1, "apply_patch", call_id="p1"),
        event(2, "patch_apply_begin", call_id="p1"),
        event(3, "patch_apply_end", call_id="p1", success=True),
        event(4, "patch_apply_begin", call_id="p2"),
        event(5, "patch_apply_end", call_id="p2", success=False),
        event(6, "item_completed", item=patched),
        call(7, "exec_command", arguments='{"cmd": "pytest"}'),
        call(8, "update_plan"),
    ]
    write(tmp_path, ROOT, rows)
    (lead,) = read_one(tmp_path).agents
    assert (lead.n_edits, lead.n_commands, lead.n_tools) == (1, 1, 3)
    assert lead.edit_times == [datetime.fromisoformat(at(3))]


@pytest.mark.parametrize(
    ("payload", "is_edit"),
    [
        ({"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin"}, True),
        ({"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}'}, False),
        (
            {
                "type": "function_call",
                "name": "shell",
                "arguments": '{"command":["apply_patch","x"]}',
            },
            True,
        ),
        ({"type": "local_shell_call", "action": {"command": ["ls"]}}, False),
        ({"type": "custom_tool_call", "name": "exec", "input": "tools.exec_command({})"}, False),
        ({"type": "custom_tool_call", "name": "exec", "input": "tools.apply_patch(`x`)"}, True),
    ],
)
def test_calls_tell_edits_where_the_client_reports_none(
    tmp_path: Path, payload: Row, is_edit: bool
) -> None:
    write(tmp_path, ROOT, [head(0), context(0), row(1, "response_item", **payload)])
    (lead,) = read_one(tmp_path).agents
    assert (lead.n_edits, lead.n_commands, lead.n_tools) == (is_edit, not is_edit, 1)
    assert lead.usage_missing  # a model called a tool, and nothing says what that took


def test_turns_leave_out_the_wait_for_a_person(tmp_path: Path) -> None:
    rows = [
        head(0),
        context(1, "t1"),  # settings may come before the start of their turn
        event(1, "task_started", turn_id="t1"),
        event(2, "user_message"),
        count(9, usage(10, 0, 1)),
        event(10, "task_complete", turn_id="t1"),
        event(11, "thread_settings_applied"),
        event(5000, "task_started", turn_id="t2"),
        event(5001, "user_message"),
        event(5002, "user_message"),  # steered while at work: the same turn
        event(5003, "turn_aborted", turn_id="t2", reason="interrupted"),
        event(5004, "item_completed", item={"type": "CommandExecution"}),
    ]
    write(tmp_path, ROOT, rows)
    session = read_one(tmp_path)
    starts = [datetime.fromisoformat(at(s)) for s in (1, 5000)]
    ends = [datetime.fromisoformat(at(s)) for s in (10, 5003)]
    assert session.agents[0].intervals == list(zip(starts, ends, strict=True))
    assert session.turn_starts == starts
    assert session.n_prompts == 2
    assert session.status == "cancelled"


def test_prompts_divide_turns_of_clients_that_log_no_start(tmp_path: Path) -> None:
    rows = [
        head(0),
        event(1, "user_message"),
        context(1),
        count(2, usage(10, 0, 1)),
        context(3),  # written again before each response
        count(4, usage(20, 0, 2), usage(10, 0, 1)),
        event(900, "user_message"),
        count(905, usage(30, 0, 3), usage(10, 0, 1)),
    ]
    write(tmp_path, ROOT, rows)
    session = read_one(tmp_path)
    assert session.n_prompts == 2
    assert sum((b - a).total_seconds() for a, b in session.agents[0].intervals) == 3 + 5


@pytest.mark.parametrize(
    ("last", "status"),
    [
        ([event(9, "task_complete")], "done"),
        ([event(9, "task_complete", error={"message": "429"})], "failed"),
        ([event(8, "error"), event(9, "task_complete")], "failed"),
        ([event(8, "error")], "failed"),
        ([event(8, "error"), event(8.5, "agent_message"), event(9, "task_complete")], "done"),
        ([event(9, "turn_aborted", reason="budget_limited")], "over_budget"),
        ([], "unknown"),
    ],
)
def test_status(tmp_path: Path, last: list[Row], status: str) -> None:
    write(tmp_path, ROOT, [head(0), event(1, "task_started"), context(1), *last])
    assert read_one(tmp_path).status == status


# ------------------------------------------------------------------------------- files


def test_damage_costs_its_line_and_is_counted(tmp_path: Path) -> None:
    path = write(tmp_path, ROOT, [head(0), context(0), count(1, usage(10, 0, 1))])
    path.write_bytes(path.read_bytes() + b"no json\n" + b'{"timestamp": "2026')
    (session,), rejects = read(tmp_path)
    assert [r.line for r in rejects] == [4]
    assert session.agents[0].damaged_lines == 2
    assert sum_tokens(session.agents) == Tokens(10, 0, 0, 0, 1)


def test_a_thread_that_was_only_opened_is_no_run(tmp_path: Path) -> None:
    write(tmp_path, ROOT, [head(0)])
    assert read(tmp_path) == ([], [])


REAL_ROWS = [
    json.loads(line)
    for path in sorted((CASES / "30-codex-subagent-replay-ordinal").rglob("rollout-*.jsonl"))
    for line in path.read_text().splitlines()
]
odd = st.sampled_from([None, True, -1, 1.5, 10**30, "", "x", [], [None], {}, {"type": "x"}])


@given(data=st.data())
def test_a_value_of_another_kind_breaks_nothing(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    rows = json.loads(json.dumps(REAL_ROWS))
    for _ in range(3):
        inner: Any = data.draw(st.sampled_from(rows))
        key = data.draw(st.sampled_from(sorted(inner)))
        while isinstance(inner[key], dict) and inner[key] and data.draw(st.booleans()):
            inner = inner[key]
            key = data.draw(st.sampled_from(sorted(inner)))
        inner[key] = data.draw(odd)
    path = write(tmp_path_factory.mktemp("codex"), ROOT, rows)
    for session in Codex().read([path], lambda _: None):
        assert session.agents[0].agent_id == "lead"


@pytest.mark.parametrize(
    ("start", "is_rollout"),
    [
        (b'{"timestamp":"x","type":"session_meta","payload":{"id":"a"', True),  # cut by the head
        (b'{"timestamp":"x","type":"turn_context","payload":{}}\n', True),
        (b'garbage\n{"type":"event_msg","payload":{"type":"x"}}\n', True),
        (b'{"type":"thread.started","thread_id":"a"}\n', False),
        (b'{"type":"user","message":{},"sessionId":"s"}\n', False),
        (b'{"type":"other","payload":{}}\n', False),
        (b'["session_meta"]\n', False),
        (b"\x89PNG\r\n\x1a\n", False),
        (b"", False),
    ],
)
def test_sniff(start: bytes, is_rollout: bool) -> None:
    assert Codex().sniff(Path("a.jsonl"), start) is is_rollout
    assert not Codex().sniff(Path("a.jsonl.zst"), start)


def test_sessions_come_by_their_start(tmp_path: Path) -> None:
    """A fork that was made late is younger than a thread of another family."""
    write(tmp_path, ROOT, [head(0), context(0), count(1, usage(10, 0, 1))])
    late = [head(500, CHILD, forked_from_id=ROOT), context(500), count(501, usage(5, 0, 1))]
    write(tmp_path, CHILD, late)
    write(tmp_path, OTHER, [head(100, OTHER), context(100), count(101, usage(7, 0, 1))])
    assert [session.session_id for session in read(tmp_path)[0]] == [ROOT, OTHER, CHILD]


def test_an_active_copy_that_lost_its_end_gives_way(tmp_path: Path) -> None:
    whole = write(tmp_path, ROOT, [head(0), context(0), count(1, usage(10, 0, 1))])
    archived = tmp_path / "archived_sessions" / whole.name
    archived.parent.mkdir()
    archived.write_bytes(whole.read_bytes())
    whole.write_bytes(whole.read_bytes()[:100])
    assert sum_tokens(read_one(tmp_path).agents) == Tokens(10, 0, 0, 0, 1)


def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    folder = CASES / "30-codex-subagent-replay-ordinal" / "input"
    assert read(folder) == read(folder)


# ------------------------------------------------------------------------------- samples

OWN_TOTALS = re.compile(r"^  (parent|child|sibling-[ab])[^:]*: (\{.*\})$", re.MULTILINE)


@needs_shared
@pytest.mark.parametrize("family", ["archived-fork", "live-fork", "missing-parent"])
def test_published_forks(family: str) -> None:
    folder = Path(SHARED or "") / "samples" / "codex_rollout"
    notes = next((folder / family).glob("*.source.txt")).read_text()
    own = {name: json.loads(total) for name, total in OWN_TOTALS.findall(notes)}
    sessions, rejects = read(folder / family)
    assert rejects == []
    assert len(sessions) == len(own) == 2
    for session in sessions:
        found, wanted = sum_tokens(session.agents), own[session.session_id.split("-session")[0]]
        assert found.prompt == wanted["input_tokens"]
        assert found.cache_read == wanted["cached_input_tokens"]
        assert found.output == wanted["output_tokens"]


@needs_shared
def test_published_samples_together() -> None:
    folder = Path(SHARED or "") / "samples" / "codex_rollout"
    sessions, rejects = read(folder)
    found = {session.session_id.rpartition("~")[0]: session for session in sessions}
    assert len(sessions) == 12
    assert [(r.path.name, r.line) for r in rejects] == [("toktrack-sample.jsonl", 9)]
    alpha = found["ccusage-session-alpha"].agents[0]
    assert [(r.model, r.tokens) for r in alpha.requests] == [
        ("gpt-5.2-codex", Tokens(750, 250, 0, 0, 125)),
        ("gpt-5.3-codex", Tokens(2000, 500, 0, 0, 300)),
    ]
    clock = found["tokscale-task-started"]
    assert sum_tokens(clock.agents) == Tokens(32, 8, 0, 0, 12)
    assert len(clock.agents[0].requests) == 4
    assert sum((b - a).total_seconds() for a, b in clock.agents[0].intervals) == pytest.approx(3.5)
    for name in ("fc-1", "abc-123"):
        assert found[name].agents[0].usage_missing
    lead, child = found["parent-thread"].agents
    assert lead.usage_missing
    assert child.usage_missing
    assert (child.agent_id, child.label) == ("child-thread", "/root/contract")
    assert span_s(found["parent-thread"]) == 2.0


@needs_shared
def test_files_of_the_real_client() -> None:
    folder = Path(SHARED or "") / "samples" / "real-clients" / "codex-0.171.0"
    sessions, rejects = read(folder)
    assert rejects == []
    assert len(taken(folder)) == 16  # no stdout of `codex exec --json`
    reported = {}
    for path in sorted((folder / "events").glob("*.jsonl")):
        events = [json.loads(line) for line in path.read_text().splitlines()]
        for done in (e for e in events if e["type"] == "turn.completed"):
            reported[events[0]["thread_id"]] = done["usage"]  # cumulative: the last one counts
    reported_threads = {s.session_id for s in sessions if s.agents[0].requests} & set(reported)
    assert len(reported_threads) == 6
    for session in (s for s in sessions if s.session_id in reported_threads):
        lead, wanted = sum_tokens(session.agents[:1]), reported[session.session_id]
        assert lead.prompt == wanted["input_tokens"]
        assert lead.cache_read == wanted["cached_input_tokens"]
        assert lead.output == wanted["output_tokens"]
    teams = [s for s in sessions if len(s.agents) > 1]
    assert [len(s.agents) for s in teams] == [3, 3, 2]
    assert sum_tokens(teams[0].agents).prompt == 106_794
    assert [s.status for s in sessions].count("failed") == 3
    assert [s.status for s in sessions][-1] == "cancelled"
