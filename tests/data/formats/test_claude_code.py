"""Claude Code sessions against totals worked out by hand, and by the client itself."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from teamalloc.data.formats import AgentTrace, Reject, Request, Session
from teamalloc.data.formats.claude_code import ClaudeCode
from teamalloc.data.run import Tokens, union_s
from teamalloc.testing import check_format, check_sessions

BUGCASES = Path(__file__).parents[2] / "logs" / "bugcases"
CASES = sorted(
    path.parent.name
    for path in BUGCASES.glob("*/expected.json")
    if json.loads(path.read_text())["format"] == "claude_code_session"
)
SHARED = os.environ.get("TEAMALLOC_SHARED")
SAMPLES = Path(SHARED or ".") / "samples"
needs_samples = pytest.mark.skipif(not SHARED, reason="TEAMALLOC_SHARED is not set")

START = datetime(2026, 5, 4, 12, tzinfo=UTC)
SID = "11111111-2222-4333-8444-555555555555"
OTHER = "99999999-2222-4333-8444-555555555555"
Row = dict[str, Any]


def files_of(root: Path) -> list[Path]:
    reader = ClaudeCode()
    return sorted(
        path
        for path in root.rglob("*")
        if path.is_file() and reader.sniff(path, path.read_bytes()[: 64 << 10])
    )


def read(root: Path, rejects: list[Reject] | None = None) -> list[Session]:
    reject = pytest.fail if rejects is None else rejects.append
    sessions = list(ClaudeCode().read(files_of(root), reject))
    check_sessions(sessions)
    return sessions


def totals(requests: Iterable[Request]) -> dict[str, int]:
    requests = list(requests)
    tokens = sum((r.tokens for r in requests if r.tokens is not None), Tokens())
    return {
        "input": tokens.fresh_input,
        "cache_read": tokens.cache_read,
        "cache_write_5m": tokens.cache_write_5m,
        "cache_write_1h": tokens.cache_write_1h,
        "output": tokens.output,
        "requests": len(requests),
    }


def known(expected: Row) -> Row:
    return {name: value for name, value in expected.items() if name != "reasoning"}


def seconds(agent: AgentTrace) -> float:
    return union_s((a.timestamp(), b.timestamp()) for a, b in agent.intervals)


def span(session: Session) -> float:
    assert session.started_at is not None
    assert session.ended_at is not None
    return (session.ended_at - session.started_at).total_seconds()


# --- cases worked out by hand ----------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_contract(case: str) -> None:
    check_format(ClaudeCode(), files_of(BUGCASES / case / "input"), max_cuts=8)


@pytest.mark.parametrize("case", CASES)
def test_bugcase(case: str) -> None:
    expected = json.loads((BUGCASES / case / "expected.json").read_text())["expected"]
    rejects: list[Reject] = []
    sessions = read(BUGCASES / case / "input", rejects)
    requests = [r for s in sessions for a in s.agents for r in a.requests]
    assert totals(requests) == known(expected["totals"])
    assert len({r.key for r in requests}) == len(requests)
    damaged = sum(agent.damaged_lines for session in sessions for agent in session.agents)
    assert damaged == expected.get("damaged_lines", 0)
    assert len(rejects) <= damaged
    if "models" in expected:
        assert sorted({r.model for r in requests if r.model}) == expected["models"]
    assert sum(r.tokens is None for r in requests) == expected.get("requests_with_unknown_usage", 0)
    assert all(agent.role is None for session in sessions for agent in session.agents)
    if "runs" in expected:
        _check_runs(sessions, expected)
        return
    (session,) = sessions
    _check_times(session, expected)
    if "agents" in expected:
        _check_agents(session, expected["agents"])


def _check_runs(sessions: list[Session], expected: Row) -> None:
    assert [session.session_id for session in sessions] == list(expected["runs"])
    for session in sessions:
        requests = [r for agent in session.agents for r in agent.requests]
        assert totals(requests) == known(expected["runs"][session.session_id])
        assert span(session) == expected["wall_s"][session.session_id]


def _check_times(session: Session, expected: Row) -> None:
    for name in ("wall_s", "span_s"):
        if name in expected:
            assert span(session) == pytest.approx(expected[name])
    if "active_s" in expected:
        assert seconds(session.agents[0]) == pytest.approx(expected["active_s"])
    if "turns" in expected:
        assert session.n_prompts == len(session.turn_starts) == expected["turns"]
    if "max_concurrent_subagents" in expected:
        helpers = [i for agent in session.agents[1:] for i in agent.intervals]
        most = max(sum(a <= start < b for a, b in helpers) for start, _ in helpers)
        assert most == expected["max_concurrent_subagents"]
    if "output_by_day" in expected:
        days: dict[str, int] = {}
        for request in session.agents[0].requests:
            assert request.at is not None
            assert request.tokens is not None
            day = str(request.at.astimezone(UTC).date())
            days[day] = days.get(day, 0) + request.tokens.output
        assert days == expected["output_by_day"]["UTC"]


def _check_agents(session: Session, expected: list[Row]) -> None:
    for agent, want in zip(session.agents, expected, strict=True):
        assert totals(agent.requests) == known(want["totals"])
        assert (agent.label or "lead") == want["role"]
        if "id" in want:
            assert agent.agent_id == want["id"]
        if "model" in want:
            assert {r.model for r in agent.requests} == {want["model"]}
        if "start" in want:
            ((start, end),) = agent.intervals
            assert start == datetime.fromisoformat(want["start"]) == agent.started_at
            assert end == datetime.fromisoformat(want["end"])
        assert agent.parent_id == (None if agent.agent_id == "lead" else "lead")


def test_speed_and_asked_model_are_kept() -> None:
    (fast,) = read(next(BUGCASES.glob("18-*")) / "input")
    assert [r.speed for r in fast.agents[0].requests] == ["fast", "standard"]
    (team,) = read(next(BUGCASES.glob("06-*")) / "input")
    assert [agent.asked_model for agent in team.agents] == [None, None, "sonnet"]
    assert (team.client, team.client_version, team.cwd) == ("claude_code", "2.1.210", "/repo/demo")


# --- logs of real clients --------------------------------------------------------------------


def _sample_notes() -> list[Path]:
    return sorted((SAMPLES / "claude_code").rglob("*.source.txt")) if SHARED else []


@needs_samples
@pytest.mark.parametrize("note", _sample_notes(), ids=lambda path: path.name[:20])
def test_totals_written_beside_a_sample(note: Path, tmp_path: Path) -> None:
    """Each file alone, so that nothing told of it elsewhere corrects it."""
    text = note.read_text()
    name = note.name.removesuffix(".source.txt")
    if "acompact" in name:
        name = name.replace("acompact-", "a")
    shutil.copy(note.with_name(note.name.removesuffix(".source.txt")), tmp_path / name)
    (session,) = read(tmp_path)
    requests = [r for agent in session.agents for r in agent.requests if r.tokens is not None]
    stated = re.search(r"^\s+(\{.*\"requests\".*\})$", text, re.MULTILINE)
    if stated is None:
        wanted = "input 600, output 250, cache_write 75, cache_read 70"
        assert wanted in text
        got = totals(requests)
        assert (got["input"], got["output"], got["cache_read"]) == (600, 250, 70)
        assert got["cache_write_5m"] + got["cache_write_1h"] == 75
        assert sum(r.cost_reported_usd or 0 for r in requests) == Decimal("1.02")
        return
    assert totals(requests) == json.loads(stated.group(1))
    assert all(r.lower_bound for r in requests)
    ends = re.search(r"timestamp: (\S+) \.\. (\S+)", text)
    assert ends is not None
    if name == note.name.removesuffix(".source.txt"):
        first, last = map(datetime.fromisoformat, ends.groups())
        assert session.started_at == first
        assert session.ended_at is not None
        # the row that says a turn is over comes a moment after its last answer
        assert timedelta() <= session.ended_at - last < timedelta(seconds=1)


@needs_samples
def test_what_callers_were_told_mends_the_last_output() -> None:
    sessions = read(SAMPLES / "claude_code" / "sess-258c")
    lead, helper = sessions[0].agents
    assert totals(lead.requests)["requests"] == 152 + 1  # and one compaction
    assert helper.label == "claude-code-guide"
    assert helper.requests[-1].tokens == Tokens(6, 22041, 0, 20135, 997)
    assert [r.lower_bound for r in helper.requests] == [True, True, False]


def _real_sessions() -> list[Path]:
    return sorted((SAMPLES / "real-clients").glob("claude-code-*/projects/*")) if SHARED else []


@needs_samples
@pytest.mark.parametrize("project", _real_sessions(), ids=lambda path: path.name)
def test_real_client_agrees_with_its_own_sums(project: Path) -> None:
    for session in read(project):
        log = (project / f"{session.session_id}.jsonl").read_text()
        states = [line for line in log.splitlines() if line.startswith('{"type":"cost-state"')]
        by_model: dict[str, list[Request]] = {}
        for agent in session.agents:
            for request in agent.requests:
                by_model.setdefault(str(request.model), []).append(request)
        for model, used in json.loads(states[-1])["modelUsage"].items() if states else ():
            got = totals(by_model.pop(model))
            assert got["input"] == used["inputTokens"]
            assert got["output"] == used["outputTokens"]
            assert got["cache_read"] == used["cacheReadInputTokens"]
            assert got["cache_write_5m"] == used["cacheCreationEphemeral5mInputTokens"]
            assert got["cache_write_1h"] == used["cacheCreationEphemeral1hInputTokens"]
        assert not (states and by_model)
        assert session.n_prompts == 1


@needs_samples
def test_real_endings_and_efforts() -> None:
    projects = SAMPLES / "real-clients" / "claude-code-2.1.332" / "projects"
    assert {s.status for s in read(projects / "repo-kill")} == {"done", "cancelled"}
    assert [s.status for s in read(projects / "repo-term")] == ["unknown"]
    (background,) = read(projects / "repo-bg")
    assert background.status == "done"
    assert [a.asked_model for a in background.agents] == [None, "haiku", "sonnet"]
    assert {r.effort for a in background.agents for r in a.requests} == {"medium"}
    assert len(background.agents[0].intervals) == 3  # woken twice by its helpers
    assert [a.n_edits for a in background.agents] == [0, 1, 0]


@needs_samples
def test_what_claude_p_prints_is_not_taken() -> None:
    for folder in ("claude-code-2.1.332/events", "codex-0.171.0", "pi-0.74.2"):
        assert files_of(SAMPLES / "real-clients" / folder) == []
    assert files_of(SAMPLES / "codex_rollout") == []
    assert files_of(SAMPLES / "claude_code_teams") == []


# --- what no sample shows --------------------------------------------------------------------


class Writer:
    """Writes rows the way the client does: own uuids, times in order."""

    def __init__(self, session_id: str = SID) -> None:
        self.session_id = session_id
        self.rows: list[Row] = []
        self._ids = count(1)

    def row(self, kind: str, at: float, **fields: Any) -> Row:
        stamp = (START + timedelta(seconds=at)).isoformat().replace("+00:00", "Z")
        row = {
            "type": kind,
            "uuid": f"{self.session_id[:8]}-{next(self._ids)}",
            "sessionId": self.session_id,
            "timestamp": stamp,
            "isSidechain": False,
            **fields,
        }
        self.rows.append(row)
        return row

    def prompt(self, at: float, text: str = "do it", **fields: Any) -> Row:
        return self.row("user", at, message={"role": "user", "content": text}, **fields)

    def answer(
        self,
        at: float,
        message_id: str,
        *,
        prompt: int | None = 10,
        output: int | None = 5,
        tools: Iterable[tuple[str, str, Row]] = (),
        **fields: Any,
    ) -> Row:
        blocks = [{"type": "tool_use", "id": i, "name": n, "input": x} for i, n, x in tools]
        message = {
            "id": message_id,
            "role": "assistant",
            "model": fields.pop("model", "claude-opus-5"),
            "content": blocks or [{"type": "text", "text": "well"}],
            "stop_reason": fields.pop("stop", "tool_use" if blocks else "end_turn"),
            "usage": {"input_tokens": prompt, "output_tokens": output},
        }
        return self.row("assistant", at, message=message, **fields)

    def result(self, at: float, tool_use_id: str, told: Row | None = None, **fields: Any) -> Row:
        content = [{"type": "tool_result", "tool_use_id": tool_use_id, "content": "ok"}]
        more = {} if told is None else {"toolUseResult": told}
        return self.row("user", at, message={"role": "user", "content": content}, **more, **fields)

    def save(self, folder: Path, name: str | None = None) -> Path:
        path = folder / f"{name or self.session_id}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in self.rows))
        return path

    def copies(self, rows: Iterable[Row], **fields: Any) -> None:
        """Rows of another session as a resumed one holds them."""
        for row in rows:
            uuid = f"{self.session_id[:8]}-{next(self._ids)}"
            self.rows.append({**row, "uuid": uuid, "sessionId": self.session_id, **fields})


def real_id(n: int) -> str:
    return f"msg_01AbCdEfGh2345678{n:04d}"


@pytest.fixture
def lead() -> Writer:
    return Writer()


def test_replayed_side_question_counts_once_and_for_the_lead(lead: Writer, tmp_path: Path) -> None:
    lead.prompt(0)
    lead.answer(5, real_id(1), output=50, requestId="req_a")
    lead.save(tmp_path)
    side = Writer()
    side.prompt(0, isSidechain=True, agentId="a1")
    side.answer(5, real_id(1), output=70, requestId="req_b", isSidechain=True, agentId="a1")
    side.prompt(20, "by the way", isSidechain=True, agentId="a1")
    side.answer(24, real_id(2), output=9, isSidechain=True, agentId="a1")
    side.save(tmp_path / SID / "subagents", "agent-a1")
    (session,) = read(tmp_path)
    main, helper = session.agents
    assert totals(main.requests)["output"] == 70  # the most complete copy
    assert totals(helper.requests) == {**totals([]), "input": 10, "output": 9, "requests": 1}
    assert seconds(helper) == 4


def test_overhead_agents_are_the_leads(lead: Writer, tmp_path: Path) -> None:
    lead.prompt(0)
    lead.answer(5, real_id(1))
    lead.save(tmp_path)
    for n, name in enumerate(("acompact-1", "aprompt_suggestion-2", "aside_question-3")):
        extra = Writer()
        extra.prompt(6 + n, isSidechain=True, agentId=name)
        extra.answer(6.5 + n, real_id(10 + n), isSidechain=True, agentId=name)
        extra.save(tmp_path / SID / "subagents", f"agent-{name}")
    (session,) = read(tmp_path)
    (main,) = session.agents
    assert len(main.requests) == 4
    assert session.n_prompts == 1


@pytest.mark.parametrize("mark", [{"forkedFrom": {"sessionId": SID}}, {"sessionId": SID}, {}])
def test_fork_owns_only_what_it_added(lead: Writer, mark: Row, tmp_path: Path) -> None:
    lead.prompt(0)
    lead.answer(5, real_id(1), tools=[("toolu_1", "Write", {})])
    lead.result(6, "toolu_1")
    lead.answer(8, real_id(2))
    lead.save(tmp_path)
    fork = Writer(OTHER)
    fork.copies(lead.rows, **mark)
    fork.prompt(1000)
    fork.answer(1010, real_id(3), output=7)
    fork.save(tmp_path)
    first, second = read(tmp_path)
    assert (first.session_id, first.n_prompts, first.agents[0].n_edits) == (SID, 1, 1)
    assert totals(second.agents[0].requests)["output"] == 7
    assert (second.n_prompts, second.agents[0].n_edits, span(second)) == (1, 0, 10)


def test_sessions_come_oldest_first(tmp_path: Path) -> None:
    """A resumed one starts with old rows, but began later than a session in between."""
    first = Writer()
    first.prompt(0)
    first.answer(5, real_id(1))
    first.save(tmp_path)
    resumed = Writer(OTHER)
    resumed.copies(first.rows)
    resumed.prompt(1000)
    resumed.answer(1005, real_id(2))
    resumed.save(tmp_path)
    between = Writer("22222222-2222-4333-8444-555555555555")
    between.prompt(500)
    between.answer(505, real_id(3))
    between.save(tmp_path)
    assert [s.session_id for s in read(tmp_path)] == [SID, between.session_id, OTHER]


def test_copy_without_own_rows_is_no_session(lead: Writer, tmp_path: Path) -> None:
    lead.prompt(0)
    lead.answer(5, real_id(1))
    lead.save(tmp_path)
    copy = Writer(OTHER)
    copy.copies(lead.rows)
    copy.save(tmp_path)
    assert len(read(tmp_path)) == 1


def test_session_moved_to_another_folder_is_one(lead: Writer, tmp_path: Path) -> None:
    lead.prompt(0)
    lead.answer(5, real_id(1), tools=[("toolu_1", "Bash", {})])
    lead.save(tmp_path / "old")
    lead.prompt(100)
    lead.answer(105, real_id(2))
    lead.save(tmp_path / "new")
    (session,) = read(tmp_path)
    assert totals(session.agents[0].requests)["requests"] == 2
    assert (session.n_prompts, session.agents[0].n_commands) == (2, 1)
    assert seconds(session.agents[0]) == 10


def test_placeholder_ids_of_two_sessions_are_different(tmp_path: Path) -> None:
    for session_id, start in ((SID, 0), (OTHER, 500)):
        log = Writer(session_id)
        log.prompt(start)
        log.answer(start + 5, "msg_translated", prompt=100)
        log.answer(start + 5.1, "msg_translated", prompt=100)
        log.save(tmp_path)
    sessions = read(tmp_path)
    keys = {r.key for s in sessions for r in s.agents[0].requests}
    assert [len(s.agents[0].requests) for s in sessions] == [1, 1]
    assert len(keys) == 2


def test_keys_are_the_same_in_a_copy_read_alone(lead: Writer, tmp_path: Path) -> None:
    for n, name in enumerate((real_id(1), "msg_placeholder", "msg_placeholder")):
        lead.prompt(10.0 * n)
        lead.answer(10.0 * n + 5, name, prompt=10 + n)
    lead.save(tmp_path / "a")
    copy = Writer(OTHER)
    copy.copies(lead.rows)
    copy.save(tmp_path / "b")
    (a,), (b,) = read(tmp_path / "a"), read(tmp_path / "b")
    keys = [r.key for r in a.agents[0].requests]
    assert keys == [r.key for r in b.agents[0].requests]
    assert len(set(keys)) == 3
    assert "msg" not in "".join(filter(None, keys))[len("claude:") :]


def test_nested_helper_belongs_to_the_helper_that_started_it(lead: Writer, tmp_path: Path) -> None:
    lead.prompt(0)
    lead.answer(1, real_id(1), tools=[("toolu_1", "Agent", {"subagent_type": "Plan"})])
    lead.result(20, "toolu_1", {"agentId": "a1", "status": "completed"})
    lead.answer(25, real_id(2))
    lead.save(tmp_path)
    outer = Writer()
    outer.prompt(2, isSidechain=True)
    outer.answer(3, real_id(3), tools=[("toolu_2", "Agent", {"prompt": "dig", "model": "haiku"})])
    outer.save(tmp_path / SID / "subagents", "agent-a1")
    inner = Writer()
    inner.prompt(4, "dig", isSidechain=True)
    inner.answer(9, real_id(4))
    inner.save(tmp_path / SID / "subagents" / "deep", "agent-a2")
    (tmp_path / SID / "subagents" / "journal.jsonl").write_text('{"x":1}\n')
    (session,) = read(tmp_path)
    assert [(a.agent_id, a.parent_id, a.label, a.asked_model) for a in session.agents] == [
        ("lead", None, None, None),
        ("a1", "lead", "Plan", None),
        ("a2", "a1", None, "haiku"),
    ]


def test_helper_without_rows_is_unknown_not_free(lead: Writer, tmp_path: Path) -> None:
    lead.prompt(0)
    lead.answer(1, real_id(1), tools=[("toolu_1", "Task", {"subagent_type": "Explore"})])
    last = {"input_tokens": 3, "output_tokens": 4}
    told = {"agentId": "a9", "resolvedModel": "claude-haiku-4-5", "usage": last}
    lead.result(20, "toolu_1", told)
    lead.answer(25, real_id(2))
    lead.save(tmp_path)
    (session,) = read(tmp_path)
    helper = session.agents[1]
    assert (helper.agent_id, helper.label, helper.usage_missing) == ("a9", "Explore", True)
    assert [(r.model, r.tokens) for r in helper.requests] == [("claude-haiku-4-5", None)]


def test_flat_helper_file_of_old_versions_joins_by_its_rows(lead: Writer, tmp_path: Path) -> None:
    lead.prompt(0)
    lead.answer(1, real_id(1))
    lead.save(tmp_path)
    helper = Writer()
    helper.prompt(2, isSidechain=True, agentId="abc")
    helper.answer(3, real_id(2), isSidechain=True, agentId="abc")
    helper.save(tmp_path, "agent-abc")
    (session,) = read(tmp_path)
    assert [a.agent_id for a in session.agents] == ["lead", "abc"]
    (tmp_path / f"{SID}.jsonl").unlink()
    (orphan,) = read(tmp_path)
    assert orphan.agents[0].usage_missing
    assert totals(orphan.agents[1].requests)["requests"] == 1


def test_helper_continued_later_worked_twice(lead: Writer, tmp_path: Path) -> None:
    lead.prompt(0)
    lead.answer(1, real_id(1))
    lead.save(tmp_path)
    helper = Writer()
    for start in (10, 1000):
        helper.prompt(start, isSidechain=True)
        helper.answer(start + 5, real_id(start))
    helper.save(tmp_path / SID / "subagents", "agent-a1")
    (session,) = read(tmp_path)
    assert len(session.agents[1].intervals) == 2
    assert seconds(session.agents[1]) == 10


def test_waiting_for_a_person_is_no_work(lead: Writer, tmp_path: Path) -> None:
    lead.prompt(0)
    lead.answer(10, real_id(1), tools=[("toolu_1", "AskUserQuestion", {})])
    lead.result(5000, "toolu_1")
    lead.answer(5007, real_id(2))
    lead.prompt(9000, "<command-name>/model</command-name>")
    lead.prompt(9000, "<local-command-stdout>set</local-command-stdout>")
    lead.save(tmp_path)
    (session,) = read(tmp_path)
    assert seconds(session.agents[0]) == 17
    assert (session.n_prompts, session.status) == (1, "done")


def test_what_is_a_prompt(lead: Writer, tmp_path: Path) -> None:
    lead.prompt(0, "caveat", isMeta=True)
    lead.prompt(1, "<command-name>/init</command-name>")
    lead.prompt(1, "expanded", isMeta=True)
    lead.answer(5, real_id(1))
    lead.prompt(10, "<task-notification>\nx</task-notification>")
    lead.answer(11, real_id(2))
    lead.prompt(20, "This session is being continued", isCompactSummary=True)
    lead.prompt(30, "go on")
    lead.answer(31, real_id(3))
    lead.prompt(40, "[Request interrupted by user]")
    lead.save(tmp_path)
    (session,) = read(tmp_path)
    assert session.turn_starts == [START + timedelta(seconds=s) for s in (1, 30)]
    assert (session.n_prompts, session.status) == (2, "cancelled")
    assert seconds(session.agents[0]) == 4 + 1 + 10


def test_retries_and_failure(lead: Writer, tmp_path: Path) -> None:
    lead.prompt(0)
    lead.answer(1, real_id(1))
    for attempt, wait in enumerate((600, 1400.5)):
        lead.row("system", 2, subtype="api_error", retryInMs=wait, retryAttempt=attempt)
    lead.answer(9, "x", model="<synthetic>", prompt=0, output=0, isApiErrorMessage=True)
    lead.save(tmp_path)
    (session,) = read(tmp_path)
    assert session.agents[0].waited_s == pytest.approx(2.0005)
    assert session.status == "failed"
    assert len(session.agents[0].requests) == 1


def test_tools_are_counted_once(lead: Writer, tmp_path: Path) -> None:
    lead.prompt(0)
    names = ("Read", "Edit", "MultiEdit", "NotebookEdit", "Bash", "Grep")
    for n, name in enumerate(names):
        lead.answer(n + 1, real_id(1), tools=[(f"toolu_{n}", name, {"secret": "s3cret"})])
    lead.answer(9, real_id(1), tools=[("toolu_1", "Edit", {})])
    lead.save(tmp_path)
    (session,) = read(tmp_path)
    agent = session.agents[0]
    assert (agent.n_tools, agent.n_edits, agent.n_commands) == (6, 3, 1)
    assert agent.edit_times == [START + timedelta(seconds=s) for s in (2, 3, 4)]
    assert "s3cret" not in repr(session)


def test_team_member_is_marked_but_not_named(lead: Writer, tmp_path: Path) -> None:
    lead.prompt(0, teamName="moonlit", agentName="ann", entrypoint="cli", gitBranch="b")
    lead.answer(1, real_id(1))
    lead.save(tmp_path)
    (session,) = read(tmp_path)
    assert session.tags == {"agent_team": "yes", "entrypoint": "cli"}
    assert session.branch == "b"


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"input_tokens": None, "output_tokens": 3},
        {"input_tokens": "12", "output_tokens": 3},
        {"input_tokens": -1, "output_tokens": 3},
        {"input_tokens": 0, "output_tokens": 0},
        {"input_tokens": True, "output_tokens": 1.5},
    ],
)
def test_usage_that_says_nothing_is_unknown(usage: Any, lead: Writer, tmp_path: Path) -> None:
    lead.prompt(0)
    lead.answer(1, real_id(1))["message"]["usage"] = usage
    lead.save(tmp_path)
    (session,) = read(tmp_path)
    assert [r.tokens for r in session.agents[0].requests] == [None]


def test_files_that_are_no_session_yield_nothing(lead: Writer, tmp_path: Path) -> None:
    snapshots = [{"type": "file-history-snapshot", "messageId": "m", "snapshot": {}}] * 3
    (tmp_path / "s.jsonl").write_text("".join(json.dumps(s) + "\n" for s in snapshots))
    lead.prompt(0)
    lead.save(tmp_path)
    assert len(files_of(tmp_path)) == 2
    assert read(tmp_path) == []


def test_picture_is_one_reject(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 9)
    assert not ClaudeCode().sniff(path, path.read_bytes())
    rejects: list[Reject] = []
    assert list(ClaudeCode().read([path], rejects.append)) == []
    assert [(r.line, r.reason) for r in rejects] == [(None, "not text")]


def test_damaged_meta_file_is_a_reject(lead: Writer, tmp_path: Path) -> None:
    lead.prompt(0)
    lead.answer(1, real_id(1))
    lead.save(tmp_path)
    meta = tmp_path / SID / "subagents" / "agent-a1.meta.json"
    meta.parent.mkdir(parents=True)
    meta.write_text('{"agentType": ')
    rejects: list[Reject] = []
    (session,) = read(tmp_path, rejects)
    assert [(r.path, r.reason) for r in rejects] == [(meta, "not JSON")]
    before = session.digest
    meta.write_text('{"agentType": "x"}')
    assert read(tmp_path)[0].digest != before
    assert read(tmp_path)[0].digest == read(tmp_path)[0].digest


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) inside a row."""
    keys = value.keys() if isinstance(value, dict) else range(len(value))
    for key in list(keys):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


@given(data=st.data())
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_row_however_odd_stops_the_reader(data: st.DataObject, tmp_path: Path) -> None:
    log = Writer()
    log.prompt(0, forkedFrom=None, origin={"kind": "human"}, promptSource="sdk")
    log.answer(1, real_id(1), tools=[("toolu_1", "Agent", {"prompt": "p", "model": "m"})])
    log.result(2, "toolu_1", {"agentId": "a1", "usage": {"input_tokens": 1, "output_tokens": 2}})
    log.prompt(3, isSidechain=True)
    log.row("system", 4, subtype="api_error", retryInMs=5)
    log.answer(5, "msg_x", effort="high", costUSD=0.5)
    places = list(_places(log.rows))
    for _ in range(data.draw(st.integers(1, 4))):
        container, key = data.draw(st.sampled_from(places))
        container[key] = data.draw(junk)
    log.rows = [row for row in log.rows if isinstance(row, dict)]
    log.save(tmp_path)
    rejects: list[Reject] = []
    for session in read(tmp_path, rejects):
        assert session.agents[0].agent_id == "lead"
    assert all(reject.line is not None for reject in rejects)


def _heads() -> Iterator[tuple[str, bool]]:
    yield '{"type":"summary","summary":"x","leafUuid":"u"}', True
    yield '{"type":"queue-operation","sessionId":"s"}', True
    yield '{"type":"mode","sessionId":"s"}\n{"type":"user","uuid":"u","sessionId":"s"}', True
    yield '{"parentUuid":null,"isSidechain":false,"message":{"content":"' + "x" * 70_000, True
    yield 'torn{"par\n{"type":"user","uuid":"u","sessionId":"s","message":{}}', True
    yield '{"type":"system","subtype":"init","session_id":"s","uuid":"u"}', False
    yield '{"timestamp":"t","type":"session_meta","payload":{"id":"s"}}', False
    yield '{"type":"session","version":3,"id":"x"}', False
    yield "[1, 2]", False
    yield "", False


@pytest.mark.parametrize(("head", "taken"), list(_heads()))
def test_sniff(head: str, taken: bool) -> None:
    assert ClaudeCode().sniff(Path("x.jsonl"), head.encode()[: 64 << 10]) is taken
    assert not ClaudeCode().sniff(Path("x.txt"), head.encode())


def test_sniff_takes_companions_only_under_subagents() -> None:
    for name in ("agent-a.meta.json", "journal.jsonl"):
        head = b'{"agentType": "Explore"}'
        assert ClaudeCode().sniff(Path("s", "subagents", "workflows", "w", name), head)
        assert not ClaudeCode().sniff(Path("s", name), head)
