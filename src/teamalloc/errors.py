"""Every error teamalloc raises on purpose, and the exit code of the command for each.

    TeamallocError
    ├── BadInput           2   what was given cannot be used
    │   ├── BadLog         2   … a log, table or settings file: path, line, reason
    │   └── UnknownName    2   … a name that is in no table: lists the names there are
    ├── Refusal            3   the question is fine, the evidence does not allow an answer
    │   ├── NotEnoughRuns  3   … have / need
    │   └── Infeasible     3   … no team keeps the limits: nearest team and repairs
    ├── OverBudget         4   a run was stopped at a limit
    ├── Unaccounted        5   money was settled that no agent reports
    ├── StoreError         6   locked, corrupt, newer, read-only
    └── BackendError       7   CLI missing or too old, no credentials, agent crash

Exit code 0 is an answer or a tie, 130 an interruption (Ctrl-C).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


class TeamallocError(Exception):
    """Root of the tree. ``remedy`` says in one sentence what the user can do about it."""

    exit_code = 1

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}".strip()


class BadInput(TeamallocError):
    """What was given cannot be used."""

    exit_code = 2


class BadLog(BadInput):
    """A file that cannot be read as what it should be; ``line`` is 1-based, None = the whole file."""

    def __init__(
        self, path: Path | str, reason: str, *, line: int | None = None, remedy: str = ""
    ) -> None:
        where = f"{path}:{line}" if line is not None else f"{path}"
        super().__init__(f"{where}: {reason}", remedy=remedy)
        self.path = Path(path)
        self.line = line
        self.reason = reason


class UnknownName(BadInput):
    """A name that is in no table."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = ", ".join(sorted(known))
        super().__init__(f"unknown {kind} {name!r}.", remedy=f"There are: {names}.")
        self.name = name


class Refusal(TeamallocError):
    """The question is fine, but the evidence does not allow an answer."""

    exit_code = 3


class NotEnoughRuns(Refusal):
    """Fewer runs than an answer needs."""

    def __init__(self, what: str, *, have: int, need: int, remedy: str = "") -> None:
        super().__init__(f"{what}: have {have}, need at least {need}.", remedy=remedy)
        self.have = have
        self.need = need


class Infeasible(Refusal):
    """No allowed team keeps the limits; carries the recommendation with its nearest team."""

    def __init__(self, message: str, *, remedy: str = "", recommendation: object = None) -> None:
        super().__init__(message, remedy=remedy)
        self.recommendation = recommendation


class OverBudget(TeamallocError):
    """A run was stopped at a limit."""

    exit_code = 4


class Unaccounted(TeamallocError):
    """Money was settled that no agent reports."""

    exit_code = 5


class StoreError(TeamallocError):
    """The run store cannot be used: locked, corrupt, written by a newer version, read-only."""

    exit_code = 6


class BackendError(TeamallocError):
    """An agent's command line is missing, too old, without credentials, or crashed."""

    exit_code = 7
