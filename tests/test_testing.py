"""The contract of log formats, tried on the reader of docs/extending.md and on broken ones."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pytest

from teamalloc.data.formats import AgentTrace, Format, OnReject, Reject, Session
from teamalloc.data.run import Tokens
from teamalloc.testing import ContractBroken, check_format

EXTENDING = Path(__file__).parents[1] / "docs" / "extending.md"


def block(language: str, text: str) -> str:
    """The first code block of a language."""
    found = re.search(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def tally(tmp_path_factory: pytest.TempPathFactory) -> Format:
    """The reader of the page, as it stands there."""
    file = tmp_path_factory.mktemp("docs") / "tally.py"
    file.write_text(block("python", EXTENDING.read_text(encoding="utf-8")))
    reader: Format = SimpleNamespace(**runpy.run_path(str(file))).Tally()
    return reader


@pytest.fixture
def logs(tmp_path: Path) -> list[Path]:
    """Two sessions: that of the page, and one a day older whose file sorts behind it."""
    text = block("json", EXTENDING.read_text(encoding="utf-8"))
    older = text.replace("s-17", "s-16").replace("11-03", "11-02").replace('"id": "a', '"id": "b')
    for name, body in (("s-17.jsonl", text), ("old/s-16.jsonl", older)):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(body)
    return sorted(tmp_path.rglob("*.jsonl"), reverse=True)


def test_the_reader_of_the_page_keeps_the_contract(tally: Format, logs: list[Path]) -> None:
    check_format(tally, logs, max_cuts=None)


def test_the_reader_of_the_page_reads_its_logs(tally: Format, logs: list[Path]) -> None:
    rejects: list[Reject] = []
    sessions = list(tally.read(sorted(logs), rejects.append))
    assert not rejects
    assert [session.session_id for session in sessions] == ["s-16", "s-17"]
    tokens = [request.tokens for request in sessions[1].agents[0].requests]
    assert tokens == [Tokens(fresh_input=1200, output=300), Tokens(fresh_input=2500, output=140)]


def test_logs_are_left_as_they_were(tally: Format, logs: list[Path]) -> None:
    before = [path.read_bytes() for path in logs]
    check_format(tally, logs)
    assert [path.read_bytes() for path in logs] == before


class Altered:
    """The reader of the page, with one thing done wrong to all that it reads."""

    name = "altered"
    version = 1

    def __init__(self, reader: Format, alter: Callable[[list[Session]], object]) -> None:
        self.reader = reader
        self.alter = alter

    def sniff(self, path: Path, head: bytes) -> bool:
        return self.reader.sniff(path, head)

    def links(self, path: Path, head: bytes) -> tuple[str, ...]:
        return self.reader.links(path, head)

    def read(self, paths: Sequence[Path], on_reject: OnReject) -> Iterator[Session]:
        sessions = list(self.reader.read(paths, on_reject))
        if sessions:
            self.alter(sessions)
        yield from sessions


def lead(sessions: list[Session]) -> AgentTrace:
    return sessions[0].agents[0]


def naive(at: datetime | None) -> datetime | None:
    return at and at.replace(tzinfo=None)


def negative() -> Tokens:
    tokens = Tokens()
    object.__setattr__(tokens, "cache_read", -1)
    return tokens


def set_on_first(**values: object) -> Callable[[list[Session]], object]:
    return lambda sessions: sessions.__setitem__(0, replace(sessions[0], **values))  # type: ignore[arg-type]


BROKEN: dict[str, tuple[Callable[[list[Session]], object], str]] = {
    "newest first": (lambda s: s.reverse(), "comes before one of"),
    "session twice": (lambda s: s.append(s[-1]), "session ids repeat"),
    "digest": (set_on_first(digest="A" * 64), "digest is"),
    "reward": (set_on_first(reward=1.5), "reward is 1.5"),
    "cost": (set_on_first(total_reported_usd=Decimal(-1)), "total_reported_usd is -1"),
    "time": (set_on_first(active_s=float("nan")), "active_s is nan"),
    "zone": (
        lambda s: setattr(lead(s).requests[0], "at", naive(lead(s).requests[0].at)),
        "has no time zone",
    ),
    "backwards": (
        lambda s: lead(s).intervals.append(tuple(reversed(lead(s).intervals[0]))),  # type: ignore[arg-type]
        "runs backwards",
    ),
    "key twice": (lambda s: lead(s).requests.append(lead(s).requests[0]), "requests repeat"),
    "negative": (lambda s: setattr(lead(s).requests[0], "tokens", negative()), "cache_read=-1"),
    "no lead": (lambda s: setattr(lead(s), "agent_id", "a1"), "not the lead"),
    "orphan": (
        lambda s: s[0].agents.append(AgentTrace("a1", parent_id="a0")),
        "'a0' is no agent here",
    ),
}


@pytest.mark.parametrize(("alter", "complaint"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_session_is_found(
    alter: Callable[[list[Session]], object], complaint: str, tally: Format, logs: list[Path]
) -> None:
    with pytest.raises(ContractBroken, match=re.escape(complaint)):
        check_format(Altered(tally, alter), logs)


class Greedy(Altered):
    def sniff(self, path: Path, head: bytes) -> bool:
        return path.suffix == ".jsonl"


class Forgetful(Altered):
    """Reads every log once."""

    def read(self, paths: Sequence[Path], on_reject: OnReject) -> Iterator[Session]:
        reader, self.reader = self.reader, Silent()
        return reader.read(paths, on_reject)


class Silent:
    name = "silent"
    version = 1

    def sniff(self, path: Path, head: bytes) -> bool:
        return head.startswith(b'{"tally":')

    def links(self, path: Path, head: bytes) -> tuple[str, ...]:
        return ()

    def read(self, paths: Sequence[Path], on_reject: OnReject) -> Iterator[Session]:
        on_reject(Reject(paths[0], "I say nothing"))
        return iter(())


class Fragile(Altered):
    """Believes that every line is whole."""

    def read(self, paths: Sequence[Path], on_reject: OnReject) -> Iterator[Session]:
        for path in paths:
            if not path.read_bytes().endswith(b"\n"):
                raise KeyError("usage")
        return self.reader.read(paths, on_reject)


class Terse(Altered):
    def read(self, paths: Sequence[Path], on_reject: OnReject) -> Iterator[Session]:
        return self.reader.read(paths, lambda reject: on_reject(replace(reject, reason="")))


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        (Greedy, "sniff takes a picture named s-1"),
        (Forgetful, "a second reading gives other sessions"),
        (Fragile, "cut at byte .*: read raised KeyError"),
        (Terse, "reject without a reason"),
    ],
)
def test_a_broken_reader_is_found(
    kind: type[Altered], complaint: str, tally: Format, logs: list[Path]
) -> None:
    with pytest.raises(ContractBroken, match=complaint):
        check_format(kind(tally, list), logs)


def test_a_reader_that_finds_nothing_is_found(tally: Format, logs: list[Path]) -> None:
    with pytest.raises(ContractBroken, match="hold no session"):
        check_format(Silent(), logs)
    with pytest.raises(ContractBroken, match="no files"):
        check_format(tally, [])
