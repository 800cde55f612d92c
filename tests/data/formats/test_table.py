"""Tables under a column map: rows worked out by hand."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from teamalloc.data.formats import Reject, Session
from teamalloc.data.formats.native import CSV_COLUMNS, csv_row
from teamalloc.data.formats.table import Table
from teamalloc.data.run import AgentUsage, Run, Source, Tokens, UsageSlice
from teamalloc.data.team import parse_team
from teamalloc.errors import BadInput, BadLog, UnknownName
from teamalloc.testing import check_format

MAPS = Path(__file__).parents[3] / "docs" / "maps"


def read(
    tmp_path: Path, table_map: str | Path, table: str, name: str = "t.csv"
) -> tuple[list[Session], list[Reject]]:
    path = tmp_path / name
    path.write_text(table, encoding="utf-8")
    if isinstance(table_map, str):
        map_path = tmp_path / "map.toml"
        map_path.write_text(table_map)
    else:
        map_path = table_map
    rejects: list[Reject] = []
    reader = Table(map_path)
    assert reader.sniff(path, path.read_bytes()[:65536])
    return list(reader.read([path], rejects.append)), rejects


def test_published_means_with_a_total_over_runs(tmp_path: Path) -> None:
    sessions, rejects = read(
        tmp_path,
        MAPS / "teambench.toml",
        "planner,executor,verifier,partial_score,total_cost_usd_75_runs\n"
        "Gemini-3f,Haiku-4.5,Haiku-4.5,0.695,20.52\n",
    )
    assert rejects == []
    (session,) = sessions
    assert str(session.team) == (
        "lead=claude-haiku-4-5 planner=gemini-3-flash verifier=claude-haiku-4-5 blocking"
    )
    assert session.n_runs == 75
    assert session.total_reported_usd == Decimal("0.2736")  # 20.52 / 75
    assert session.reward == 0.695
    assert session.assigned
    assert session.agents == []


def test_a_planted_world_with_tokens_by_role(tmp_path: Path) -> None:
    sessions, rejects = read(
        tmp_path,
        MAPS / "worlds.toml",
        "task,lead,n_planners,planner,n_implementers,implementer,n_verifiers,verifier,mode,reward,"
        "cost_usd,latency_s,tokens_lead,tokens_planners,tokens_implementers,tokens_verifiers\n"
        "t000,sol,8,luna,0,,1,terra,async,0.5,2.5,90,0.25,1.5,0,0.125\n"
        "t001,luna,0,,0,,0,,blocking,0.25,0.5,30,1,0,0,0\n",
    )
    assert rejects == []
    team, solo = sessions
    assert str(team.team) == "lead=sol planner=luna*8 verifier=terra async"
    assert (team.task, team.active_s) == ("t000", 90)
    used = {
        agent.role: (agent.requests[0].model, agent.requests[0].tokens) for agent in team.agents
    }
    assert used == {
        "lead": ("sol", Tokens(250_000)),
        "planner": ("luna", Tokens(1_500_000)),
        "verifier": ("terra", Tokens(125_000)),
    }
    assert solo.team is not None
    assert solo.team.is_solo
    assert [agent.role for agent in solo.agents] == ["lead"]


EVERYTHING = """
task = "task"
session = "id"
lead = "model"
lead_effort = { value = "high" }
mode = { value = "async" }
reward = { column = "pct", unit = "percent" }
cost_usd = { column = "cents", unit = "cents" }
latency = { column = "min", unit = "min" }
started_at = { column = "when", unit = "unix_s" }
n_runs = "n"
assigned = false
client = { value = "home-made" }
missing = ["NA"]
delimiter = ";"
[[planner]]
model = "p1"
[[planner]]
model = "p2"
count = { column = "agents", add = -1 }
[tokens.lead]
prompt = "in"
cache_read = "cached"
output = "out"
[tokens.team]
output = "all"
[tags]
set = "set"
[models]
big = "openai/GPT-5.6-sol"
[only]
set = ["a", "b"]
"""
HEADER = "id;task;model;pct;cents;min;when;n;p1;p2;agents;in;cached;out;all;set\n"


def test_units_scales_and_filters(tmp_path: Path) -> None:
    sessions, rejects = read(
        tmp_path,
        EVERYTHING,
        HEADER
        + "r1;one;big;62.5;$150;1.5;1700000000;4;luna@low;terra;3;1000;600;50;70;a\n"
        + "r2;two;big;NA;NA;NA;NA;NA;NA;NA;1;NA;NA;NA;NA;b\n"
        + "r3;three;big;1;1;1;1;1;luna;luna;2;1;1;1;1;other set\n",
    )
    assert rejects == []
    first, second = sessions
    assert str(first.team) == "lead=gpt-5.6-sol@high planner=luna@low planner=terra*2 async"
    assert (first.reward, first.total_reported_usd, first.active_s) == (0.625, Decimal("1.5"), 90)
    assert first.started_at == datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert (first.session_id, first.n_runs, first.assigned) == ("r1", 4, False)
    assert first.tags == {"set": "a"}
    lead, everyone = first.agents
    assert lead.requests[0].tokens == Tokens(fresh_input=400, cache_read=600, output=50)
    assert (lead.requests[0].model, lead.requests[0].effort) == ("gpt-5.6-sol", "high")
    assert (everyone.role, everyone.requests[0].model) == ("unknown", None)  # two models share it
    assert str(second.team) == "lead=gpt-5.6-sol@high blocking"
    assert (second.reward, second.total_reported_usd, second.n_runs) == (None, None, 1)
    assert second.agents == []


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("t,sol,good,1,1", "reward is 'good', which is no number"),
        ("t,sol,1.5,1,1", r"lies in \[0, 1\], not 1.5 \(unit"),
        ("t,sol,NaN,1,1", "finite"),
        ("t,sol,1,-3,1", "cost_usd must not be negative"),
        ("t,sol,1,inf,1", "finite"),
        ("t,sol,1,1,-1", "latency must not be negative"),
        ("t,,1,1,1", "names no lead"),
        ("t,a*b=c,1,1", "4 cells under 5"),
        ("t,sol,1,1,1,extra", "6 cells under 5"),
    ],
)
def test_a_bad_row_is_rejected_by_line_and_the_rest_lands(
    tmp_path: Path, row: str, says: str
) -> None:
    table_map = 'task="task"\nlead="lead"\nreward="reward"\ncost_usd="cost"\nlatency="s"\n'
    good = 't,"sol",pass,1,1\n'
    sessions, rejects = read(
        tmp_path, table_map, f'task,lead,reward,cost,s\n{good}\n"t\n2",sol,0,1,1\n{row}\n{good}'
    )
    assert [session.reward for session in sessions] == [1.0, 0.0, 1.0]
    assert [reject.line for reject in rejects] == [6]  # a blank line and a cell of two lines before
    with pytest.raises(BadInput, match=says):
        raise BadInput(rejects[0].reason)


def test_equal_rows_are_runs_of_their_own_and_keep_their_ids(tmp_path: Path) -> None:
    table = "lead,reward\nsol,1\nsol,1\nluna,0\n"
    first, _ = read(tmp_path, 'lead="lead"\nreward="reward"\n', table)
    again, _ = read(
        tmp_path, 'lead="lead"\nreward="reward"\n', "lead,reward\nluna,0\nsol,1\nsol,1\n"
    )
    assert len({session.session_id for session in first}) == 3
    assert {session.session_id for session in first} == {s.session_id for s in again}


def test_a_session_twice_is_rejected(tmp_path: Path) -> None:
    sessions, rejects = read(
        tmp_path, 'lead="lead"\nsession="id"\n', "id,lead\nx,sol\nx,luna\ny,sol\n"
    )
    assert [session.session_id for session in sessions] == ["x", "y"]
    assert "'x' is in the table already" in rejects[0].reason


def test_rows_of_json(tmp_path: Path) -> None:
    rows = [{"lead": "sol", "ok": True}, {"lead": "sol", "ok": None}, {"lead": ["sol"]}, {"ok": 1}]
    sessions, rejects = read(
        tmp_path,
        'lead="lead"\nreward="ok"\n',
        "\n".join(map(json.dumps, rows)) + "\n",
        "t.jsonl",
    )
    assert [session.reward for session in sessions] == [1.0, None]
    assert [reject.line for reject in rejects] == [3, 4]


def test_a_row_that_counts_agents_of_no_model_is_wrong(tmp_path: Path) -> None:
    _, rejects = read(
        tmp_path, 'lead="lead"\n[planner]\nmodel="p"\ncount="n"\n', "lead,p,n\nsol,,3\n"
    )
    assert "3 planners" in rejects[0].reason


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("laed = 'x'", UnknownName, "laed.*There are: .*lead"),
        ("lead = 'x'\n[planner]\nmodle = 'x'", UnknownName, "modle.*count, effort, model"),
        ("lead = 'x'\n[tokens.lead]\ninput = 'x'", UnknownName, "input.*fresh_input"),
        ("lead = 'x'\n[tokens.boss]\noutput = 'x'", UnknownName, "boss"),
        ("lead = 'x'\nreward = {colum = 'x'}", UnknownName, "colum"),
        ("lead = 'x'\nreward = {unit = 'percent'}", BadLog, "needs a column or a value"),
        ("lead = 'x'\nreward = {column = 'r', unit = 'points'}", BadLog, "fraction, percent"),
        ("lead = 'x'\ncost_usd = {column = 'r', scale = nan}", BadLog, "finite"),
        ("task = 'x'", BadLog, "what the lead is"),
        ("lead = ", BadLog, "not a map in TOML"),
        ("lead = 'x'\nplanner = 'p'", BadLog, "planner is a table"),
    ],
)
def test_a_wrong_map_is_named(tmp_path: Path, text: str, error: type[BadInput], says: str) -> None:
    path = tmp_path / "map.toml"
    path.write_text(text)
    with pytest.raises(error, match=says) as caught:
        Table(path)
    assert "map" in str(caught.value)


def test_a_column_that_is_not_there_lists_those_there_are(tmp_path: Path) -> None:
    sessions, rejects = read(tmp_path, 'lead = "lead"\nreward = "scroe"\n', "lead,score\nsol,1\n")
    assert sessions == []
    assert rejects[0].reason.endswith("not there: scroe; there are: lead, score")


def test_only_a_table_with_columns_of_the_map_is_one(tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text('lead = "lead"\nreward = "score"\n')
    reader = Table(tmp_path / "map.toml")
    assert reader.sniff(Path("a.csv"), b"\xef\xbb\xbflead,other\r\nsol,1\r\n")
    assert reader.sniff(Path("a.jsonl"), b'{"score": 1}\n')
    assert not reader.sniff(Path("a.csv"), b"Dear diary,\nscore lead\n")
    assert not reader.sniff(Path("a.txt"), b"lead,score\n")
    assert not reader.sniff(Path("a.csv"), b"")
    check_format(reader, [_table(tmp_path)])


def _table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    path.write_text("lead,score\nsol,1\nluna,0.5\nsol,0\n")
    return path


def test_our_flat_export_is_read_back(tmp_path: Path) -> None:
    import csv

    usage = (
        UsageSlice("luna", Tokens(1, 2, 3, 4, 5), cost_list_usd=Decimal("0.25")),
        UsageSlice("luna", Tokens(10, 20, 30, 40, 50), cost_list_usd=Decimal("0.5")),
    )
    run = Run(
        "r1",
        parse_team("lead=sol@high planner=luna*2 async"),
        Source("claude_code", 1, "s", "d"),
        task_id="task-0123456789ab",
        agents=(
            AgentUsage("lead", "lead", usage=(usage[0],)),
            AgentUsage("a", "planner", usage=usage),
        ),
        reward=0.1 + 0.2,
        active_s=12.25,
        n_runs=3,
        status="failed",
        started_at=datetime(2026, 12, 1, tzinfo=UTC),
        client="claude",
    )
    with (tmp_path / "runs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, CSV_COLUMNS)
        writer.writeheader()
        writer.writerow(csv_row(run))
    text = (tmp_path / "runs.csv").read_text()
    (session,), rejects = read(tmp_path, MAPS / "export.toml", text, "runs.csv")
    assert rejects == []
    assert (session.session_id, session.task, session.team) == ("r1", run.task_id, run.team)
    assert (session.reward, session.active_s, session.n_runs) == (run.reward, 12.25, 3)
    assert (session.total_reported_usd, session.status) == (Decimal("1.00"), "failed")
    assert (session.started_at, session.client) == (run.started_at, "claude")
    tokens = {agent.role: agent.requests[0].tokens for agent in session.agents}
    assert tokens == {"lead": Tokens(1, 2, 3, 4, 5), "planner": Tokens(11, 22, 33, 44, 55)}
