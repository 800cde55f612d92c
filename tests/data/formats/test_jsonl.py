"""The tolerant line reader, against files damaged in the ways logs are."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from teamalloc.data.formats import Reject, jsonl
from teamalloc.data.formats.jsonl import Damage, records


def read(path: Path, data: bytes) -> tuple[list[tuple[int, dict[str, Any]]], list[Reject], int]:
    path.write_bytes(data)
    rejects: list[Reject] = []
    damage = Damage()
    found = list(records(path, rejects.append, damage=damage))
    return found, rejects, damage.n_lines


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


def test_lines_end_at_newline_only(log: Path) -> None:
    text = '{"a":"x\u2028y\u2029z\u0085"}\r\n\n{"a":2}'
    found, rejects, damaged = read(log, text.encode())
    assert found == [(1, {"a": "x\u2028y\u2029z\u0085"}), (3, {"a": 2})]
    assert not rejects
    assert damaged == 0


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b'\xef\xbb\xbf{"a":1}', 1),
        (b'\0\0{"a":\x001}\0', 1),
        (b'{"a":"\xff"}', "\ufffd"),
        (b'{"a":"\\ud83d"}', "?"),
        (b'{"a":"\\ud83d\\ude00"}', "\U0001f600"),
        (b'{"a":"tab\there"}', "tab\there"),
    ],
)
def test_odd_bytes_cost_no_record(log: Path, line: bytes, value: object) -> None:
    found, rejects, damaged = read(log, line + b"\n")
    assert found == [(1, {"a": value})]
    assert not rejects
    assert damaged == 0


@pytest.mark.parametrize("torn", ['{"b":{"c":[1', '{"b":"half a te', '{"b":{"c":{"d":1}', '{"b"'])
def test_record_behind_a_torn_one_is_recovered(log: Path, torn: str) -> None:
    data = '{"a":1}\n' + torn + '{"a":{"b":2}}\n{"a":3}\n'
    found, rejects, damaged = read(log, data.encode())
    assert found == [(1, {"a": 1}), (2, {"a": {"b": 2}}), (3, {"a": 3})]
    assert [reject.line for reject in rejects] == [2]
    assert damaged == 1


def test_part_of_a_torn_record_is_no_record(log: Path) -> None:
    found, rejects, _ = read(log, b'{"a":1}\n{"b":{"c":1},"d":[{"e":2}\n{"a":3}\n')
    assert [number for number, _ in found] == [1, 3]
    assert [(reject.line, reject.reason) for reject in rejects] == [(2, "not JSON")]


def test_cut_last_line_is_counted_but_no_reject(log: Path) -> None:
    found, rejects, damaged = read(log, b'{"a":1}\n{"a":')
    assert (len(found), rejects, damaged) == (1, [], 1)


def test_complete_last_line_without_end_is_read(log: Path) -> None:
    assert read(log, b'{"a":1}\n{"a":2}') == ([(1, {"a": 1}), (2, {"a": 2})], [], 0)


def test_each_damaged_line_is_rejected_by_number(log: Path) -> None:
    found, rejects, damaged = read(log, b'nonsense\n{"a":1}\n[1]\n{bad}\n{"a":2}\n')
    assert [number for number, _ in found] == [2, 5]
    assert [(r.line, r.reason) for r in rejects] == [
        (1, "not JSON"),
        (3, "not a JSON object"),
        (4, "not JSON"),
    ]
    assert damaged == 3


def test_picture_is_one_reject(log: Path) -> None:
    picture = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 40
    found, rejects, _ = read(log, picture)
    assert found == []
    assert [(r.line, r.reason) for r in rejects] == [(None, "not text")]


def test_hopeless_file_is_one_reject_and_not_read_on(log: Path) -> None:
    data = b"no json\n" * jsonl.HOPELESS_LINES + b'{"a":1}\n'
    found, rejects, _ = read(log, data)
    assert found == []
    assert [str(r) for r in rejects] == [f"{log}: no JSON records in it (line 1: not JSON)"]


def test_empty_and_missing_files(log: Path, tmp_path: Path) -> None:
    assert read(log, b"") == ([], [], 0)
    assert read(log, b"\n\n\0\n") == ([], [], 0)
    rejects: list[Reject] = []
    assert list(records(tmp_path / "none.jsonl", rejects.append)) == []
    assert rejects[0].reason.startswith("cannot be read")


def test_deep_nesting_is_damage_not_a_crash(log: Path) -> None:
    found, rejects, _ = read(log, b'{"a":1}\n' + b'{"a":' * 50_000 + b"\n" + b'{"a":2}\n')
    assert [number for number, _ in found] == [1, 3]
    assert [reject.line for reject in rejects] == [2]


def test_too_long_a_line_is_skipped_and_never_held(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 1 << 20)
    long = b'{"a":"' + b"x" * (40 << 20) + b'"}'
    log.write_bytes(b'{"a":1}\n' + long + b'\n{"a":2}\n')
    rejects: list[Reject] = []
    tracemalloc.start()
    found = list(records(log, rejects.append))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == [(1, {"a": 1}), (3, {"a": 2})]
    assert [(r.line, r.reason) for r in rejects] == [
        (2, f"line of {len(long)} bytes is longer than {1 << 20}")
    ]
    assert peak < 12 << 20


def test_file_of_one_too_long_line_says_so(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 100)
    _, rejects, damaged = read(log, b"x" * 1000)
    assert [str(r) for r in rejects] == [
        f"{log}: no JSON records in it (line 1: line of 1000 bytes is longer than 100)"
    ]
    assert damaged == 1


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
rows = st.lists(
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), values), min_size=1
)


@given(rows=rows, chunk=st.integers(1, 64))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_what_was_written_is_read_whatever_the_chunks(
    rows: list[dict[str, Any]], chunk: int, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    log.write_bytes(data)
    digest = hashlib.sha256()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonl, "CHUNK_BYTES", chunk)
        found = [row for _, row in records(log, pytest.fail, digest=digest)]
    assert found == [json.loads(json.dumps(row)) for row in rows]
    assert digest.hexdigest() == hashlib.sha256(data).hexdigest()
