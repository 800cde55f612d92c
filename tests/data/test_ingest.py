"""From files to stored runs. Truth: the bug cases' hand-worked totals, and rows worked out here."""

from __future__ import annotations

import csv
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from teamalloc.data.formats.native import encode
from teamalloc.data.ingest import Ingested, ingest
from teamalloc.data.prices import PriceBook
from teamalloc.data.run import Run, Source, Tokens
from teamalloc.data.store import RunStore
from teamalloc.data.team import parse_team
from teamalloc.errors import BadInput, BadLog, UnknownName

CASES = Path(__file__).parents[1] / "logs" / "bugcases"
MAPS = Path(__file__).parents[2] / "docs" / "maps"
READ_HERE = ("claude_code_session", "codex_rollout", "mini_swe_agent")
KINDS = ("fresh_input", "cache_read", "cache_write_5m", "cache_write_1h", "output")

needs_shared = pytest.mark.skipif(
    "TEAMALLOC_SHARED" not in os.environ, reason="TEAMALLOC_SHARED names no folder of samples"
)


@pytest.fixture(autouse=True)
def _no_user_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TEAMALLOC_PRICES", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "no-config"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    with RunStore.open(f"sqlite:///{tmp_path / 'runs.db'}") as opened:
        yield opened


@pytest.fixture(scope="session")
def book() -> PriceBook:
    return PriceBook.load()


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# --- the bug cases, end to end --------------------------------------------------------------------


def price_file(prices: dict[str, dict[str, Any]]) -> str:
    """The case's own price table as a user's price file."""
    rows = []
    for model, rates in prices.items():
        variants = [({}, rates)]
        variants += [({"speed": '"fast"'}, rates["fast"])] if "fast" in rates else []
        variants += [
            ({"above": key.removeprefix("above_").replace("k", "000")}, tier)
            for key, tier in rates.items()
            if key.startswith("above_")
        ]
        for extra, usd in variants:
            numbers = {key: str(n) for key, n in usd.items() if isinstance(n, int | float)}
            numbers = {key: n for key, n in numbers.items() if "multiplier" not in key}
            fields = {"model": f'"{model}"', **extra, **numbers}
            rows.append("[[price]]\n" + "".join(f"{key} = {n}\n" for key, n in fields.items()))
    return "\n".join(rows)


def bug_cases() -> list[str]:
    return sorted(
        path.parent.name
        for path in CASES.glob("*/expected.json")
        if json.loads(path.read_text())["format"].startswith(READ_HERE)
    )


def expected_tokens(totals: dict[str, int]) -> Tokens:
    names = {kind: kind for kind in KINDS} | {"fresh_input": "input"}
    return Tokens(**{kind: totals[name] for kind, name in names.items()})


def known_tokens(runs: list[Run]) -> Tokens:
    total = Tokens()
    for run in runs:
        for agent in run.agents:
            for piece in agent.usage:
                total += piece.tokens or Tokens()
    return total


@pytest.mark.parametrize("name", bug_cases())
def test_bug_case(name: str, store: RunStore, tmp_path: Path) -> None:
    case = json.loads((CASES / name / "expected.json").read_text())
    expected = case["expected"]
    table = case.get("prices_usd_per_mtok", {})
    prices = PriceBook.load(write(tmp_path / "prices.toml", price_file(table)))
    logs = tmp_path / "logs"
    shutil.copytree(CASES / name / "input", logs)

    done = ingest([logs], store=store, prices=prices)
    runs = store.runs()
    assert len(runs) == done.added == len(done.run_ids)
    again = ingest([logs], store=store, prices=prices)
    assert (again.added, again.updated, again.unchanged) == (0, 0, len(runs))
    assert store.runs() == runs

    if "totals" in expected:
        assert known_tokens(runs) == expected_tokens(expected["totals"])
    if table and expected.get("cost_usd") is not None:
        costs = [run.cost_usd for run in runs]
        assert None not in costs
        assert sum(cost for cost in costs if cost is not None) == Decimal(str(expected["cost_usd"]))
    spans = expected.get("wall_s", expected.get("span_s"))
    if isinstance(spans, dict):
        assert {run.source.session_id: run.span_s for run in runs} == spans
    elif spans is not None:
        assert [run.span_s for run in runs] == [pytest.approx(spans, abs=1e-6)]
    if "active_s" in expected:
        assert [run.active_s for run in runs] == [pytest.approx(expected["active_s"], abs=0.02)]
    if "max_concurrent_subagents" in expected:
        assert [run.max_concurrent for run in runs] == [expected["max_concurrent_subagents"]]
    for agent in expected.get("agents", ()):
        label = None if agent["role"] == "lead" else agent["role"]
        found = [a for run in runs for a in run.agents if a.agent_label == label]
        found = [a for a in found if a.tokens == expected_tokens(agent["totals"])]
        assert found, f"no agent {label} with these tokens"
        if table and "cost_usd" in agent:
            assert found[0].cost_usd == Decimal(str(agent["cost_usd"]))


def run_bug_case(name: str, store: RunStore, prices: PriceBook) -> tuple[Ingested, list[Run]]:
    done = ingest([CASES / name / "input"], store=store, prices=prices)
    return done, store.runs()


def test_an_unknown_model_makes_the_cost_unknown_and_keeps_the_known_part(
    store: RunStore, book: PriceBook
) -> None:
    _, (run,) = run_bug_case("47-unknown-model-not-default-price", store, book)
    assert run.cost_usd is None
    assert "price_missing" in run.flags
    by_model = {piece.model: piece.cost_usd for piece in run.agents[0].usage}
    assert by_model == {"claude-opus-5": Decimal("0.0075"), "acme-coder-9": None}


def test_two_prompts_four_weeks_apart(store: RunStore, book: PriceBook) -> None:
    _, (run,) = run_bug_case("16-idle-gap-is-not-latency", store, book)
    assert run.multi_turn
    assert len(run.turn_starts_s) == 2
    assert [piece.turn for piece in run.agents[0].usage] == [0, 1]


def test_team_and_roles_of_a_session_with_sub_agents(store: RunStore, book: PriceBook) -> None:
    _, (run,) = run_bug_case("06-claude-subagent-files", store, book)
    assert run.team is not None
    assert run.team.lead.model == "claude-opus-5"
    assert {(seat.model, seat.count) for seat in run.team.helpers} == {
        ("claude-haiku-4-5", 1),
        ("claude-sonnet-4-5", 1),
    }
    assert run.team.mode == "blocking"


def test_a_copied_history_belongs_to_the_older_session(
    store: RunStore, book: PriceBook, tmp_path: Path
) -> None:
    name = "05-claude-resume-copies-history"
    older, newer = "e42639b0-faa3-42c3-8f09-fd4dca0bd871", "28d87c81-351f-46eb-83f3-567882c7579f"
    _, runs = run_bug_case(name, store, book)
    assert [run.source.session_id for run in runs] == [older, newer]
    with RunStore.open(f"sqlite:///{tmp_path / 'apart.db'}") as apart:
        for session in (older, newer):
            path = CASES / name / "input" / f"{session}.jsonl"
            done = ingest([path], store=apart, prices=book)
        assert done.repeated_requests == 2
        one, two = apart.runs()
    assert replace(one, tags=()) == replace(runs[0], tags=())  # each store has its own salt
    assert (two.tokens, two.cost_usd, two.span_s) == (
        runs[1].tokens,
        runs[1].cost_usd,
        runs[1].span_s,
    )


def test_nothing_private_is_stored(store: RunStore, book: PriceBook, tmp_path: Path) -> None:
    secret = {"cwd": "/home/someone/secret-project", "gitBranch": "secret-branch"}
    rows = [
        {
            "type": "user",
            "uuid": "u1",
            "parentUuid": None,
            "sessionId": "s1",
            "timestamp": "2026-09-10T10:00:00.000Z",
            "message": {"role": "user", "content": "secret prompt"},
            **secret,
        },
        {
            "type": "assistant",
            "uuid": "a1",
            "parentUuid": "u1",
            "sessionId": "s1",
            "requestId": "r1",
            "timestamp": "2026-09-10T10:00:05.000Z",
            "message": {
                "id": "m1",
                "role": "assistant",
                "model": "claude-opus-5",
                "content": [{"type": "text", "text": "secret answer"}],
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 10, "output_tokens": 20},
            },
            **secret,
        },
    ]
    path = write(tmp_path / "s1.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    ingest([path], store=store, prices=book)
    (run,) = store.runs()
    assert b"secret" not in encode(run)
    tags = dict(run.tags)
    assert tags["cwd"].startswith("cwd-")
    assert tags["branch"].startswith("branch-")
    assert run.cost_usd == Decimal("0.00055")  # 10 x 5 + 20 x 25 millionths
    labels = store.labels()
    assert labels[tags["cwd"]] == secret["cwd"]


# --- tables and our own log -----------------------------------------------------------------------

WORLD = (
    "task,lead,n_planners,planner,n_implementers,implementer,n_verifiers,verifier,mode,reward,"
    "cost_usd,latency_s,tokens_lead,tokens_planners,tokens_implementers,tokens_verifiers\n"
    "t000,sol,8,luna,0,,0,,async,0.5,9,90,0.25,1.5,0,0\n"
    "t001,luna,0,,0,,0,,blocking,0.25,9,30,1,0,0,0\n"
    "t002,luna,0,,0,,0,,blocking,good,9,30,1,0,0,0\n"
)


def test_a_planted_world_is_priced_by_the_users_file(store: RunStore, tmp_path: Path) -> None:
    rows = '[[price]]\nmodel = "sol"\ninput = 8\noutput = 8\n[[price]]\nmodel = "luna"\ninput = 2\noutput = 2\n'
    prices = PriceBook.load(write(tmp_path / "prices.toml", rows))
    table = write(tmp_path / "runs.csv", WORLD)
    done = ingest([table], store=store, prices=prices, table_map=MAPS / "worlds.toml")
    assert (done.added, done.no_reward) == (2, 0)
    assert [(reject.path, reject.line) for reject in done.rejects] == [(table, 4)]
    team, solo = sorted(store.runs(), key=lambda run: -(run.reward or 0))
    assert str(team.team) == "lead=sol planner=luna*8 async"
    assert team.cost_usd == Decimal("5")  # 0.25 x 8 + 1.5 x 2
    assert [agent.role for agent in team.agents] == ["lead", "planner"]
    assert (solo.cost_usd, solo.active_s, solo.reward_source) == (2, 30, "log")
    assert team.assigned
    assert team.task_id is not None
    assert team.task_id.startswith("task-")
    again = ingest([table], store=store, prices=prices, table_map=MAPS / "worlds.toml")
    assert (again.added, again.updated, again.unchanged) == (0, 0, 2)


def test_our_own_log_comes_back_as_it_was(store: RunStore, book: PriceBook, tmp_path: Path) -> None:
    _, (run,) = run_bug_case("06-claude-subagent-files", store, book)
    path = write(tmp_path / "export.jsonl", encode(run) + b"\n")
    with RunStore.open(f"sqlite:///{tmp_path / 'other.db'}") as other:
        done = ingest([path], store=other, prices=book)
        assert done.n_by_format == (("claude_code", 1),)
        assert other.runs() == [run]
    assert ingest([path], store=store, prices=book).unchanged == 1


# --- rewards --------------------------------------------------------------------------------------


def three_runs(tmp_path: Path) -> Path:
    rows = "id,task,lead\nr1,parser,sol\nr2,lexer,sol\nr3,lexer,luna\n"
    write(tmp_path / "map.toml", 'session = "id"\ntask = "task"\nlead = "lead"\n')
    return write(tmp_path / "runs.csv", rows)


def graded(
    store: RunStore, book: PriceBook, tmp_path: Path, rewards: str, *, with_logs: bool = True
) -> Ingested:
    table = three_runs(tmp_path)
    return ingest(
        [table] if with_logs else [],
        store=store,
        prices=book,
        table_map=tmp_path / "map.toml",
        rewards=write(tmp_path / "rewards.csv", rewards),
    )


def test_rewards_by_run_session_and_task(store: RunStore, book: PriceBook, tmp_path: Path) -> None:
    done = graded(store, book, tmp_path, "session,reward,task\nr2,pass,\n,0.25,parser\n")
    assert (done.added, done.n_rewards, done.no_reward) == (3, 2, 1)
    rewards = {run.source.session_id: (run.reward, run.reward_source) for run in store.runs()}
    assert rewards == {"r1": (0.25, "file"), "r2": (1.0, "file"), "r3": (None, None)}
    run_id = next(run.run_id for run in store.runs() if run.source.session_id == "r3")
    graded(store, book, tmp_path, f"run,reward\n{run_id},fail\n", with_logs=False)
    assert store.run(run_id).reward == 0.0
    graded(store, book, tmp_path, "session,reward\n")  # the table again: rewards stay
    assert store.run(run_id).reward == 0.0


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("session,reward\nr1,0.5\nr2,good\n", 3, "'good' is no reward"),
        ("session,reward\nr1,1.5\n", 2, "no reward"),
        ("session,reward\nr1,nan\n", 2, "no reward"),
        ("session,reward\nr1,\n", 2, "no reward"),
        ("task,reward\nlexer,1\n", 2, "task 'lexer' has 2 runs"),
        ("task,reward\nparse,1\n", 2, "task 'parse' has 0 runs"),
        ("session,reward\nr9,1\n", 2, "r9"),
        ("session,task,reward\nr1,parser,1\n", 2, "exactly one"),
        ("name,reward\nr1,1\n", 1, "It needs reward"),
        ("", 1, "its columns are none"),
    ],
)
def test_a_bad_rewards_file_changes_nothing(
    store: RunStore, book: PriceBook, tmp_path: Path, text: str, line: int, says: str
) -> None:
    with pytest.raises(BadLog, match=says) as caught:
        graded(store, book, tmp_path, text)
    assert (caught.value.exit_code, caught.value.line) == (2, line)
    assert store.runs() == []


# --- bad input ------------------------------------------------------------------------------------

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.jsonl", PNG, "not text"),
        ("a.jsonl", b"", "empty"),
        ("a.txt", b"Dear diary\n", "not a log"),
        ("a.json", b'{"colour": "green"}\n', "JSON of an unknown kind"),
        ("a.csv", b"task,reward\nx,1\n", "--map"),
        ("a.jsonl", b'{"type":"thread.started","thread_id":"x"}\n', "codex exec event stream"),
    ],
)
def test_a_file_given_by_name_is_rejected_with_a_reason(
    store: RunStore, book: PriceBook, tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    path = write(tmp_path / name, content)
    done = ingest([path], store=store, prices=book)
    assert [reject.path for reject in done.rejects] == [path]
    assert says in done.rejects[0].reason
    assert store.runs() == []


def test_what_lies_in_a_folder_beside_logs_is_left_alone(
    store: RunStore, book: PriceBook, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(CASES / "01-claude-content-blocks-repeat-usage" / "input", logs / "deep")
    write(logs / "README.md", "x")
    write(logs / "script.json", '{"colour": 1}')
    write(logs / "map.csv", "a,b\n1,2\n")
    write(logs / "events.jsonl", '{"type":"thread.started","thread_id":"x"}\n')
    write(logs / "picture.jsonl", PNG)
    (logs / "loop").symlink_to(logs)
    seen: list[str] = []

    def look(path: Path, n_bytes: int) -> None:
        assert n_bytes == path.stat().st_size
        seen.append(path.name)

    done = ingest(
        [logs, logs / "deep"],
        store=store,
        prices=book,
        progress=look,
    )
    assert done.added == 1
    assert [reject.path.name for reject in done.skipped] == ["events.jsonl"]
    assert [reject.path.name for reject in done.rejects] == ["picture.jsonl"]
    assert len(seen) == len(set(seen))


def test_a_folder_without_a_log_says_what_was_looked_for(
    store: RunStore, book: PriceBook, tmp_path: Path
) -> None:
    write(tmp_path / "empty" / "notes.md", "x")
    with pytest.raises(BadInput, match=r"no agent log in .*claude_code"):
        ingest([tmp_path / "empty"], store=store, prices=book)
    with pytest.raises(BadInput, match="there is no "):
        ingest([tmp_path / "gone"], store=store, prices=book)


def test_a_cut_log_lands_up_to_the_cut(store: RunStore, book: PriceBook, tmp_path: Path) -> None:
    (source,) = (CASES / "01-claude-content-blocks-repeat-usage" / "input").glob("*.jsonl")
    whole = source.read_bytes()
    path = write(tmp_path / source.name, whole[:-40])
    done = ingest([path], store=store, prices=book)
    assert done.added == 1
    path.write_bytes(whole)
    assert ingest([path], store=store, prices=book).updated == 1


def test_a_forced_format(store: RunStore, book: PriceBook, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="There are: claude_code, codex, mini_swe, native"):
        ingest([tmp_path], store=store, prices=book, format="claud")
    with pytest.raises(BadInput, match="column map"):
        ingest([tmp_path], store=store, prices=book, format="table")
    run = Run("r1", parse_team("lead=sol"), Source("native", 1, "r1", "d"))
    path = write(tmp_path / "x.log", encode(run))
    assert ingest([path], store=store, prices=book, format="native").added == 1


# --- samples outside the project ------------------------------------------------------------------


@needs_shared
def test_the_real_clients_files_are_all_read(store: RunStore, book: PriceBook) -> None:
    folder = Path(os.environ["TEAMALLOC_SHARED"], "samples", "real-clients")
    done = ingest([folder], store=store, prices=book)
    assert done.rejects == ()
    assert done.added > 20


@needs_shared
def test_the_published_rolemix_table(store: RunStore, book: PriceBook) -> None:
    path = Path(os.environ["TEAMALLOC_SHARED"], "evidence/teambench/rolemix_27_configs.csv")
    done = ingest([path], store=store, prices=book, table_map=MAPS / "teambench.toml")
    assert (done.added, done.rejects) == (27, ())
    runs = store.runs()
    assert all(run.n_runs == 75 and run.assigned for run in runs)
    with path.open(newline="") as file:
        listed = sum(Decimal(row["total_cost_usd_75_runs"]) for row in csv.DictReader(file))
    assert float(sum(run.cost_usd or 0 for run in runs) * 75) == pytest.approx(float(listed))
