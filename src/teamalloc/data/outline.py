"""Which runs there are to name, after merging and splitting, without decoding one of them.

read    s1   s2   s3                  what was read
wholes  └─s1─┘    s3                  s1 and s2 were grouped
items     s1      s3.1  s3.2          s3 was split: these are the runs that others see
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from teamalloc.errors import BadInput, UnknownName

_N_SHOWN = 8


class ReadRun(NamedTuple):
    """A run as read."""

    run_id: str
    session_id: str
    started_us: int | None
    "microseconds since 1970; None = unknown"


@dataclass(frozen=True, slots=True)
class Whole:
    """Runs that were read and count as one."""

    run_id: str
    "of the earliest"
    subject: str
    "under which edits of it are kept: the group, else the run"
    members: tuple[ReadRun, ...]
    "the earliest first"

    @property
    def read_ids(self) -> tuple[str, ...]:
        return tuple(member.run_id for member in self.members)


@dataclass(frozen=True, slots=True)
class Item:
    """A run that others see: a whole, or a part of one."""

    run_id: str
    whole: Whole
    split_from: tuple[str, ...] = ()
    "what was split to get it, the whole's id first; empty = it is the whole"

    @property
    def subject(self) -> str:
        """Under which edits of it are kept."""
        return self.run_id if self.split_from else self.whole.subject

    @property
    def names(self) -> set[str]:
        """What it may be called."""
        sessions = {member.session_id for member in self.whole.members}
        return {self.run_id, *sessions, *(() if self.split_from else self.whole.read_ids)}


def outline(
    read: Iterable[ReadRun], groups: Mapping[str, str], splits: Mapping[str, int]
) -> list[Item]:
    """All items, the latest last; groups: run to group, splits: run to turn."""
    members = defaultdict(list)
    for run in sorted(read, key=_moment):
        members[groups.get(run.run_id, run.run_id)].append(run)
    wholes = [Whole(runs[0].run_id, subject, tuple(runs)) for subject, runs in members.items()]
    wholes.sort(key=lambda whole: _moment(whole.members[-1]))
    return [
        Item(run_id, whole, split_from)
        for whole in wholes
        for run_id, split_from in _parts(whole.run_id, (), splits)
    ]


def _moment(run: ReadRun) -> tuple[float, str]:
    return (float("-inf") if run.started_us is None else run.started_us, run.run_id)


def _parts(
    run_id: str, split_from: tuple[str, ...], splits: Mapping[str, int]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    if run_id not in splits:
        yield run_id, split_from
        return
    for suffix in (".1", ".2"):
        yield from _parts(run_id + suffix, (*split_from, run_id), splits)


def find(items: Sequence[Item], word: str) -> Item:
    """The item that ``word`` means: a run or session id, a beginning of one, or "last".

    Raises:
        BadInput: none or more than one is meant; the message lists them, or what comes near.
    """
    if not items:
        raise BadInput("the store holds no run.", remedy="Read some: `allocate ingest PATH`.")
    if word == "last":
        return items[-1]
    exact = [item for item in items if word in item.names]
    found = exact or [
        item for item in items if word and any(name.startswith(word) for name in item.names)
    ]
    if len(found) > 1:
        listed = ", ".join(item.run_id for item in found[:_N_SHOWN])
        more = ", …" if len(found) > _N_SHOWN else ""
        raise BadInput(f"{word!r} may mean {len(found)} runs.", remedy=f"One of: {listed}{more}.")
    if not found:
        raise _unknown(items, word)
    return found[0]


def _unknown(items: Sequence[Item], word: str) -> BadInput:
    import difflib

    names = {name: item.run_id for item in items for name in item.names}
    near = difflib.get_close_matches(word, names, n=_N_SHOWN, cutoff=0.7)
    if near:
        return UnknownName("run", word, {names[name] for name in near})
    return BadInput(f"unknown run {word!r}.", remedy="`allocate runs list` shows all.")
