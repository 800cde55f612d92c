"""The store, on SQLite always and on PostgreSQL where TEAMALLOC_POSTGRES_URL names a server.

That server's database gets a schema of its own for each test, which is dropped afterwards.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from run_strategies import START, a_run, runs

from teamalloc.data import database, schema
from teamalloc.data.grouping import chronological
from teamalloc.data.run import Run
from teamalloc.data.store import RunStore
from teamalloc.errors import BadInput, StoreError, UnknownName

POSTGRES = os.environ.get("TEAMALLOC_POSTGRES_URL")
needs_posix = pytest.mark.skipif(os.name == "nt", reason="file rights of POSIX")


@contextmanager
def postgres_schema() -> Iterator[str]:
    """URL of a new, empty schema."""
    if POSTGRES is None:
        pytest.skip("TEAMALLOC_POSTGRES_URL names no server")
    url = sa.make_url(POSTGRES).set(drivername="postgresql+psycopg")
    name = f"teamalloc_test_{secrets.token_hex(4)}"
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text(f"CREATE SCHEMA {name}"))
    try:
        own = url.update_query_dict({"options": f"-csearch_path={name}"})
        yield own.set(drivername="postgresql").render_as_string(hide_password=False)
    finally:
        with engine.begin() as connection:
            connection.execute(sa.text(f"DROP SCHEMA {name} CASCADE"))
        engine.dispose()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database."""
    if request.param == "sqlite":
        yield str(tmp_path / "folder" / "runs.sqlite")
    else:
        with postgres_schema() as own:
            yield own


@pytest.fixture
def store(url: str) -> Iterator[RunStore]:
    with RunStore.open(url) as opened:
        yield opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store file with one run."""
    file = tmp_path / "runs.sqlite"
    with RunStore.open(str(file)) as opened:
        put(opened, a_run())
    return file


def put(store: RunStore, *found: Run) -> None:
    with store.writing() as w:
        for run in found:
            w.put(run, [f"{run.run_id}/{i}" for i in range(3)])


# --- runs as read ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunStore]:
    with RunStore.open(str(tmp_path_factory.mktemp("store") / "runs.sqlite")) as opened:
        yield opened


@settings(max_examples=30)
@given(st.lists(runs(), max_size=3, unique_by=lambda run: run.run_id))
def test_what_was_put_comes_back(shared_store: RunStore, found: list[Run]) -> None:
    put(shared_store, *found)
    assert shared_store.runs() == sorted(found, key=chronological)
    assert shared_store.forget(before=datetime.max.replace(tzinfo=UTC)) == len(found)
    assert shared_store.runs() == []


def test_a_run_without_a_time_comes_first(store: RunStore) -> None:
    put(store, a_run("b", minute=2), a_run("c", minute=None), a_run("a", minute=2))
    assert [run.run_id for run in store.runs()] == ["c", "a", "b"]


def test_putting_again_tells_what_changed(store: RunStore) -> None:
    run = a_run()
    newer = replace(run, source=replace(run.source, reader_version=2))
    with store.writing() as w:
        changes = [w.put(r, ["k"]) for r in (run, run, replace(run, span_s=1.0), newer, newer)]
    assert changes == ["added", "unchanged", "updated", "updated", "unchanged"]
    assert store.runs() == [newer]


def test_a_request_belongs_to_the_run_that_had_it_first(store: RunStore) -> None:
    with store.writing() as w:
        w.put(a_run("a"), ["k1", "k2"])
        w.put(a_run("b"), ["k2", "k3"])
        assert w.owned_elsewhere(["k1", "k2", "k3", "k4"], "b") == {"k1", "k2"}
        assert w.owned_elsewhere(["k1", "k2", "k3", "k4"], "a") == {"k3"}
        many = [f"key {i}" for i in range(2500)]
        w.put(a_run("c"), many)
        assert w.owned_elsewhere(many, "a") == set(many)
        w.put(replace(a_run("a"), span_s=1.0), ["k1"])
        assert w.owned_elsewhere(["k1", "k2"], "b") == {"k1"}
    store.forget(["a"])
    with store.writing() as w:
        assert w.owned_elsewhere(["k1"], "b") == set()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_exception_takes_all_back(store: RunStore, error: type[BaseException]) -> None:
    put(store, a_run("a"))
    before = store.digest()

    def interrupted() -> None:
        with store.writing() as w:
            w.put(a_run("b"), ["k"])
            w.reward("a", 1.0, "file")
            w.salted("task", "secret")
            raise error

    with pytest.raises(error):
        interrupted()
    assert (store.digest(), store.labels()) == (before, {})


# --- edits ----------------------------------------------------------------------------------------


def test_edits_outlive_reading_again(store: RunStore) -> None:
    put(store, replace(a_run(), reward=0.25, reward_source="log"))
    assert store.set_reward("last", 0.8) == "r1"
    assert store.set_task("r1", "fix the parser") == "r1"
    assert store.confirm("session-r1") == "r1"
    put(store, replace(a_run(), span_s=999.0))
    run = store.run("r1")
    assert (run.span_s, run.reward, run.reward_source) == (999.0, 0.8, "user")
    assert not run.multi_turn
    assert run.task_id is not None
    assert store.labels() == {run.task_id: "fix the parser"}
    assert store.set_task("r1", run.task_id) == "r1"
    assert store.run("r1") == run, "a label is not hashed again"


@pytest.mark.parametrize("reward", [-0.1, 1.1, float("nan")])
def test_a_reward_out_of_range_is_refused(store: RunStore, reward: float) -> None:
    put(store, a_run())
    with pytest.raises(BadInput, match=r"\[0, 1\]"):
        store.set_reward("r1", reward)


def test_labels_tell_nothing_outside_their_store(tmp_path: Path) -> None:
    made = []
    for name in ("one", "two"):
        with RunStore.open(str(tmp_path / name)) as store, store.writing() as w:
            made.append(w.salted("task", "x"))
            assert w.salted("task", "x") == made[-1]
            assert w.salted("cwd", "x")[4:] != made[-1][5:]
            assert w.salted("cwd", "folder \udcff").startswith("cwd-")
    assert made[0] != made[1]
    assert all(len(label) == len("task-") + 12 for label in made)


# --- names ----------------------------------------------------------------------------------------


def test_words_that_mean_a_run(store: RunStore) -> None:
    put(
        store,
        a_run("abc-1", session="one", minute=5),
        a_run("abd-2", session="two", minute=1),
        a_run("ab", session="three", minute=None),
    )
    meant = {word: store.resolve(word) for word in ("abc", "abd-2", "ab", "tw", "three", "last")}
    assert meant == {
        "abc": "abc-1",
        "abd-2": "abd-2",
        "ab": "ab",
        "tw": "abd-2",
        "three": "ab",
        "last": "abc-1",
    }
    with pytest.raises(BadInput, match=r"'t' may mean 2 runs\. One of: ab, abd-2"):
        store.resolve("t")
    with pytest.raises(UnknownName, match="There are: abc-1"):
        store.resolve("abx-1")
    for word in ("", "zzzzz"):
        with pytest.raises(BadInput, match="runs list"):
            store.resolve(word)


def test_an_empty_store_says_what_to_do(store: RunStore) -> None:
    with pytest.raises(BadInput, match="allocate ingest"):
        store.run("last")


# --- merging and splitting ------------------------------------------------------------------------


def test_grouping_and_back(store: RunStore) -> None:
    put(store, a_run("a", minute=0), a_run("b", minute=9), a_run("c", minute=20))
    store.set_reward("b", 0.5)
    as_read = store.runs()
    assert store.group(["b", "a", "b"], task="the task") == "a"
    assert [run.run_id for run in store.runs()] == ["a", "c"]
    both = store.run("b")
    assert (both.run_id, both.cost_usd, both.reward) == ("a", Decimal("8.750"), 0.5)
    store.set_reward("a", 0.9)
    assert store.run("session-b").reward == 0.9
    assert store.group(["c", "a"]) == "a"
    (all_three,) = store.runs()
    assert (all_three.cost_usd, all_three.reward) == (Decimal("13.125"), 0.9)
    assert store.labels()[all_three.task_id or ""] == "the task"
    assert store.ungroup("c") == ["a", "b", "c"]
    assert store.runs() == as_read


def test_what_cannot_be_grouped(store: RunStore) -> None:
    put(store, a_run("a"), a_run("b"), replace(a_run("mean"), n_runs=75))
    with pytest.raises(BadInput, match="two different"):
        store.group(["a", "a"])
    with pytest.raises(BadInput, match="mean"):
        store.group(["a", "mean"])
    store.split("a", at_turn=1)
    with pytest.raises(BadInput, match="ungroup"):
        store.group(["a.1", "b"])
    with pytest.raises(BadInput, match="neither merged nor split"):
        store.ungroup("b")
    assert len(store.runs()) == 4


def test_splitting_and_back(store: RunStore) -> None:
    put(store, replace(a_run("a"), reward=0.5, reward_source="log"))
    as_read = store.runs()
    assert store.split("a", at_time=START + timedelta(seconds=60)) == ("a.1", "a.2")
    store.set_reward("a.2", 1.0)
    assert [(run.run_id, run.reward) for run in store.runs()] == [("a.1", None), ("a.2", 1.0)]
    assert store.run("last").run_id == "a.2"
    with pytest.raises(BadInput, match="may mean 2"):
        store.resolve("a")
    put(store, replace(a_run("a"), turn_starts_s=(0.0,)))  # read again, and a turn is gone
    assert [run.run_id for run in store.runs()] == ["a"]
    with pytest.raises(BadInput, match="Undo the split"):
        store.run("a.1")
    assert store.ungroup("a.1") == ["a"]
    put(store, replace(a_run("a"), reward=0.5, reward_source="log"))
    assert store.runs() == as_read


def test_a_merged_run_is_split_and_split_again(store: RunStore) -> None:
    put(store, a_run("a", minute=0), a_run("b", minute=9))
    store.group(["a", "b"])
    store.split("a", at_turn=1)
    store.split("a.2", at_turn=2)
    parts = store.runs()
    assert [run.run_id for run in parts] == ["a.1", "a.2.1", "a.2.2"]
    assert sum(run.cost_usd or 0 for run in parts) == Decimal("8.750")
    assert store.ungroup("a.2.2") == ["a.1", "a.2"]
    assert store.ungroup("a.2") == ["a"]
    assert store.ungroup("a") == ["a", "b"]


def test_forgetting(store: RunStore) -> None:
    other = replace(a_run("c", minute=60), client="claude")
    put(store, a_run("a"), a_run("b", minute=30), other, a_run("d", minute=90))
    with store.writing() as w:
        label = w.salted("task", "secret plan")
        w.put(replace(a_run("e", minute=95), task_id=label))
    store.group(["a", "b"], task="other plan")
    store.split("d", at_turn=1)
    store.set_reward("d.1", 0.5)
    assert set(store.labels().values()) == {"secret plan", "other plan"}
    with pytest.raises(BadInput, match="say which"):
        store.forget()
    with pytest.raises(BadInput, match="ungroup"):
        store.forget(["d.1"])
    assert store.forget(format="codex", client="claude") == 1
    assert store.forget(["a"]) == 2
    assert store.labels() == {label: "secret plan"}
    assert store.forget(session="session-d") == 1
    put(store, a_run("d", minute=90))
    assert [run.run_id for run in store.runs()] == ["d", "e"], "its split is forgotten too"
    assert store.forget(before=START + timedelta(minutes=91)) == 1
    assert store.forget(format="codex") == 1
    assert (store.runs(), store.labels()) == ([], {})
    with pytest.raises(BadInput, match="time zone"):
        store.forget(before=START.replace(tzinfo=None))


# --- digest, fits, frame --------------------------------------------------------------------------


def test_the_digest_changes_with_what_runs_say(store: RunStore) -> None:
    seen = [store.digest()]

    def changed() -> bool:
        seen.append(store.digest())
        return seen[-1] not in seen[:-1]

    put(store, a_run("a"), a_run("b", minute=9))
    assert changed()
    put(store, a_run("a"))
    store.put_fit("key", b"body")
    assert not changed()
    store.set_reward("a", 0.5)
    assert changed()
    store.group(["a", "b"])
    assert changed()
    store.split("a", at_turn=1)
    assert changed()


def test_the_last_eight_fits_are_kept(store: RunStore) -> None:
    assert store.fit("f0") is None
    for i in [*range(8), 0, 8, 9]:
        store.put_fit(f"f{i}", bytes([i, 0, 255]))
    kept = [i for i in range(10) if store.fit(f"f{i}") == bytes([i, 0, 255])]
    assert kept == [0, 3, 4, 5, 6, 7, 8, 9]


def test_the_frame_has_a_row_a_run(store: RunStore) -> None:
    put(store, a_run("a"), a_run("b"))
    frame = store.frame()
    assert list(frame["run_id"]) == ["a", "b"]
    assert frame["cost_usd"].sum() == Decimal("8.750")


# --- the file -------------------------------------------------------------------------------------


@needs_posix
def test_the_file_is_for_its_user_only(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        with RunStore.open(str(tmp_path / "new" / "runs.sqlite")) as store, store.writing() as w:
            w.put(a_run())
            modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in tmp_path.rglob("*")}
    finally:
        os.umask(previous)
    assert modes.pop("new") == 0o700
    assert modes == dict.fromkeys(["runs.sqlite", "runs.sqlite-wal", "runs.sqlite-shm"], 0o600)


def test_the_default_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAMALLOC_STORE", str(tmp_path / "mine.sqlite"))
    with RunStore.open() as store:
        assert store.name == str(tmp_path / "mine.sqlite")


@pytest.mark.skipif(sys.platform != "linux", reason="where a user's data lies on Linux")
def test_without_a_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEAMALLOC_STORE", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with RunStore.open() as store:
        assert store.name == str(tmp_path / ".local/share/teamalloc/runs.sqlite")
    monkeypatch.setenv("HOME", str(tmp_path / "missing"))
    with pytest.raises(StoreError, match=r"home folder.*--store.*TEAMALLOC_STORE"):
        RunStore.open()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with RunStore.open() as store:
        assert store.name == str(tmp_path / "data/teamalloc/runs.sqlite")


def test_a_store_is_only_made_if_asked_for(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        RunStore.open(str(tmp_path / "runs.sqlite"), create=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "bad",
    [
        "mysql://bob:hunter2@host/db",
        "postgresql://bob:hunter2@host:port/db",
        "postgresql://bob:p@hunter2@host/db",
    ],
)
def test_a_url_that_cannot_be_used(bad: str) -> None:
    with pytest.raises(BadInput) as caught:
        RunStore.open(bad)
    assert "hunter2" not in str(caught.value)


def test_a_server_that_is_not_there_and_no_credentials_shown() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError) as caught:
        RunStore.open("postgresql://bob:hunter2@127.0.0.1:1/runs?application_name=hunter3")
    message = str(caught.value)
    assert "postgresql://127.0.0.1:1/runs" in message
    assert not [word for word in ("bob", "hunter") if word in message]


def test_what_is_not_a_database(tmp_path: Path) -> None:
    file = tmp_path / "runs.sqlite"
    file.write_bytes(b"\x89PNG" * 1000)
    with pytest.raises(StoreError, match=r"is not a database.*--store"):
        RunStore.open(str(file))
    with pytest.raises(StoreError, match="cannot be opened"):
        RunStore.open(str(tmp_path))


def test_a_damaged_store(path: Path) -> None:
    body = bytearray(path.read_bytes())
    page = body[16] << 8 | body[17]
    body[page:] = b"\xa5" * (len(body) - page)
    path.write_bytes(body)
    with pytest.raises(StoreError, match=r"is damaged.*ingest"), RunStore.open(str(path)) as store:
        store.runs()


def test_a_damaged_run(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE runs SET body = ?", (b'{"run_id":1}',))
    connection.close()
    with RunStore.open(str(path)) as store:
        with pytest.raises(StoreError, match=r"r1 is damaged.*forget r1"):
            store.runs()
        assert store.forget(["r1"]) == 1


def test_a_store_of_a_newer_teamalloc(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.execute("UPDATE meta SET value = '9.8.7' WHERE key = 'written_by'")
    connection.close()
    with pytest.raises(StoreError, match=r"9\.8\.7 \(schema 9999\).*'teamalloc>=9\.8\.7'"):
        RunStore.open(str(path))
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM meta WHERE key = 'written_by'")
    connection.close()
    with pytest.raises(StoreError, match=r"later version.*'teamalloc'"):
        RunStore.open(str(path))


def test_a_database_of_something_else(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.sqlite") as connection:
        connection.execute("CREATE TABLE photos (id)")
    connection.close()
    with pytest.raises(StoreError, match="something else"):
        RunStore.open(str(tmp_path / "other.sqlite"))


def test_locked_by_another_process(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_S", 0.1)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with RunStore.open(str(path)) as store:
        with pytest.raises(StoreError, match=r"locked by another process.*try again"):
            store.set_reward("r1", 1.0)
        assert store.run("r1").reward is None, "reading goes on meanwhile"
        other.close()
        store.set_reward("r1", 1.0)


def test_a_full_disk(path: Path) -> None:
    with RunStore.open(str(path)) as store:
        before = store.digest()

        def fill() -> None:
            with store.writing() as w:
                w.connection.exec_driver_sql("PRAGMA max_page_count = 30")
                for i in range(200):
                    w.put(a_run(f"more-{i}"))

        with pytest.raises(StoreError, match="disk is full"):
            fill()
        assert store.digest() == before


@contextmanager
def ordinary_user() -> Iterator[None]:
    """No rights beyond those that the mode of a file gives."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


@needs_posix
def test_a_read_only_place(path: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name, "runs.sqlite")
        shutil.copy(path, copy)
        copy.chmod(0o444)
        copy.parent.chmod(0o555)
        with ordinary_user():
            with pytest.raises(StoreError, match=r"cannot make the store.*--store"):
                RunStore.open(str(copy.parent / "sub" / "runs.sqlite"))
            with (
                pytest.raises(StoreError, match=r"(is read-only|cannot be opened).*--store"),
                RunStore.open(str(copy)) as store,
            ):
                store.set_reward("r1", 1.0)
        copy.parent.chmod(0o755)


# --- the schema -----------------------------------------------------------------------------------


def test_migrations_lead_to_the_tables_that_are_used(store: RunStore) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    with store._database.reading() as connection:
        context = MigrationContext.configure(connection)
        assert context.get_current_revision() == schema.SCHEMA
        assert compare_metadata(context, schema.RUNS.metadata) == []


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Run code beside this file, so that it can import what this file can."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=Path(__file__).parent,
        text=True,
        stdout=subprocess.PIPE,
    )


def test_opening_a_store_loads_nothing_heavy(path: Path) -> None:
    code = """if True:
        import sys
        from teamalloc.data.store import RunStore
        with RunStore.open(sys.argv[1]) as store:
            store.runs()
            store.digest()
        heavy = {"alembic", "pandas", "numpy", "sqlalchemy.orm", "genai_prices", "psycopg"}
        print(sorted(heavy & set(sys.modules)))
    """
    assert python(code, str(path)).communicate()[0].strip() == "[]"


# --- several processes ----------------------------------------------------------------------------


@needs_posix
def test_a_killed_process_leaves_the_store_as_it_was(path: Path) -> None:
    code = """if True:
        import os, signal, sys
        from run_strategies import a_run
        from teamalloc.data.store import RunStore
        with RunStore.open(sys.argv[1]).writing() as w:
            for i in range(500):
                w.put(a_run(f"more-{i}"), [f"{i}/{j}" for j in range(20)])
            w.reward("r1", 1.0, "file")
            os.kill(os.getpid(), signal.SIGKILL)
    """
    with RunStore.open(str(path)) as store:
        before = store.digest()
    process = python(code, str(path))
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    with RunStore.open(str(path)) as store:
        assert store.digest() == before
        put(store, a_run("r2"))
        assert len(store.runs()) == 2


@pytest.mark.slow
def test_eight_processes_make_a_store_and_lose_nothing(url: str) -> None:
    code = """if True:
        import sys
        from run_strategies import a_run
        from teamalloc.data.store import RunStore
        with RunStore.open(sys.argv[1]) as store:
            for i in range(25):
                run = a_run(f"{sys.argv[2]}-{i}")
                with store.writing() as w:
                    w.put(run, [f"{run.run_id}/{j}" for j in range(20)] + ["shared"])
                store.set_reward(run.run_id, 0.5)
    """
    processes = [python(code, url, str(n)) for n in range(8)]
    for process in processes:
        process.communicate()
    assert [process.returncode for process in processes] == [0] * 8
    with RunStore.open(url) as store:
        found = store.runs()
        assert len(found) == 200
        assert {run.reward for run in found} == {0.5}
