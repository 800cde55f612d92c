"""Rewards from a CSV file: which run (or session, or task) earned what.

run,reward          session,reward          task,reward
1a2b3c4d5e6f,0.8    98409b85-1d44,pass      parser,0.35
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from teamalloc.errors import BadLog

Subject = Literal["run", "session", "task"]
SUBJECTS: tuple[Subject, ...] = ("run", "session", "task")

REWARD_WORDS = {"true": 1.0, "pass": 1.0, "passed": 1.0, "false": 0.0, "fail": 0.0, "failed": 0.0}


@dataclass(frozen=True, slots=True)
class RewardRow:
    """One line of such a file."""

    line: int
    subject: Subject
    name: str
    "id of the run or session, or name of the task"
    reward: float
    "[0, 1]"


def read_rewards(path: Path) -> list[RewardRow]:
    """Read the whole file, or nothing of it.

    Raises:
        BadLog: with the line of the first thing that is wrong.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return list(_rows(path, csv.DictReader(file)))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadLog(path, f"the rewards cannot be read: {error}.") from error


def _rows(path: Path, reader: csv.DictReader[str]) -> Iterator[RewardRow]:
    columns = reader.fieldnames or ()
    if "reward" not in columns or not any(subject in columns for subject in SUBJECTS):
        raise BadLog(
            path,
            f"its columns are {', '.join(columns) or 'none'}.",
            line=1,
            remedy="It needs reward, and run, session or task.",
        )
    for cells in reader:
        line = reader.line_num
        named = [s for s in SUBJECTS if (cells.get(s) or "").strip()]
        if len(named) != 1:
            raise BadLog(path, "a row names exactly one run, session or task.", line=line)
        reward = parse_reward(cells["reward"] or "")
        if reward is None:
            raise BadLog(
                path,
                f"{cells['reward']!r} is no reward.",
                line=line,
                remedy="A reward is a number from 0 to 1, or pass or fail.",
            )
        yield RewardRow(line, named[0], cells[named[0]].strip(), reward)


def parse_reward(text: str) -> float | None:
    """A reward in [0, 1] from a number or a word; None if it is none."""
    word = text.strip().lower()
    if word in REWARD_WORDS:
        return REWARD_WORDS[word]
    try:
        value = float(word)
    except ValueError:
        return None
    return value if math.isfinite(value) and 0.0 <= value <= 1.0 else None
