"""Log formats: one file each, and the records they all read into.

A reader only *extracts*: which sessions there are, which agents worked in them, which requests
they made. Everything that must be the same for every format (counting a repeated request once,
prices, roles, active time, privacy) happens afterwards and in one place, ``data/ingest.py``.

To add a format: one file with a class that keeps the ``Format`` protocol, one line in
``formats()``; ``teamalloc.testing.check_format`` is the contract it passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Protocol

from teamalloc.data.run import AgentRole, Limits, RewardSource, Run, Status, Tokens
from teamalloc.data.team import TeamConfig


@dataclass(frozen=True, slots=True)
class Reject:
    """A file or line that was not used, and why."""

    path: Path
    reason: str
    line: int | None = None
    "1-based; None = the whole file"

    def __str__(self) -> str:
        where = str(self.path) if self.line is None else f"{self.path}:{self.line}"
        return f"{where}: {self.reason}"


OnReject = Callable[[Reject], None]


@dataclass(slots=True)
class Request:
    """One response of a model."""

    key: str | None
    "identity over all files and copies; None = this format never repeats a request"
    at: datetime | None
    "when the response was complete, with zone"
    model: str | None
    "as served and as written in the log; None = not logged"
    tokens: Tokens | None
    "None = the log has no usage for it"
    effort: str | None = None
    speed: str | None = None
    service_tier: str | None = None
    cost_reported_usd: Decimal | None = None
    lower_bound: bool = False
    "its output is only known to be at least this"
    n_calls: int = 1
    "more than 1 where the log only has sums"


@dataclass(slots=True)
class AgentTrace:
    """What a log says of one agent."""

    agent_id: str
    '"lead" for the lead'
    parent_id: str | None = None
    label: str | None = None
    "the log's own word for its kind"
    asked_model: str | None = None
    requests: list[Request] = field(default_factory=list)
    intervals: list[tuple[datetime, datetime]] = field(default_factory=list)
    "when it worked; for the lead its turns, from a human prompt to the last row of the turn"
    started_at: datetime | None = None
    edit_times: list[datetime] = field(default_factory=list)
    "when it changed files"
    n_edits: int = 0
    "changes of files, timed or not"
    n_commands: int = 0
    "shell commands it ran"
    n_tools: int = 0
    "tool calls of any kind"
    role: AgentRole | None = None
    "where the log states the stage; None = infer it from what the agent did"
    waited_s: float | None = None
    usage_missing: bool = False
    "it surely called a model, but the log has no usage"
    damaged_lines: int = 0


@dataclass(slots=True)
class Session:
    """What a log says of one run, before anything is decided about it."""

    session_id: str
    agents: list[AgentTrace]
    "the lead first"
    digest: str
    "SHA-256 (hex) of everything read for this session"
    n_prompts: int = 1
    "human prompts"
    turn_starts: list[datetime] = field(default_factory=list)
    started_at: datetime | None = None
    ended_at: datetime | None = None
    status: Status = "unknown"
    task: str | None = None
    "the log's own name of the task; stored as a salted hash with a local label"
    cwd: str | None = None
    "working folder; stored only as a salted hash"
    branch: str | None = None
    "stored only as a salted hash"
    reward: float | None = None
    reward_source: RewardSource | None = None
    total_reported_usd: Decimal | None = None
    limits: Limits = field(default_factory=Limits)
    assigned: bool = False
    client: str | None = None
    client_version: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    active_s: float | None = None
    "given by the log; None = work it out from the intervals"
    span_s: float | None = None
    "given by the log; None = work it out from started_at and ended_at"
    team: TeamConfig | None = None
    "given by the log; None = work it out from the agents"
    same_as: tuple[str, ...] = ()
    """names under which other sources may know this very run ("claude:<session id>",
    "codex:<thread id>", "opencode:<session id>"): of several sources one counts, the others only
    fill in what it does not say"""
    spend_only: bool = False
    "the log cannot say what one run was: it counts in spend and reaches no fit"
    n_runs: int = 1
    run: Run | None = None
    "a finished run (our own format): taken as it is"


class Format(Protocol):
    """A reader of one log format."""

    name: str
    version: int
    "raised when the reader is mended: the same logs are then read again"

    def sniff(self, path: Path, head: bytes) -> bool:
        """Whether ``path``, which starts with ``head`` (up to 64 KiB), is in this format."""
        ...

    def links(self, path: Path, head: bytes) -> tuple[str, ...]:
        """What ties this file to others: files that share a link are always read together.

        Session and thread ids, say, or the folder of a trial. () = the file stands alone.
        """
        ...

    def read(self, paths: Sequence[Path], on_reject: OnReject) -> Iterator[Session]:
        """Yield the sessions in these files, the oldest first (history belongs to the oldest).

        ``paths`` are files that ``sniff`` took, sorted, each with all it is linked to. A line or
        file that cannot be used goes to ``on_reject``; the rest is still read. Memory does not grow with
        the size of a file, only with the number of requests in a session.
        """
        ...


def formats() -> Mapping[str, Format]:
    """The built-in formats by name, in the order in which they sniff."""
    from teamalloc.data.formats.claude_code import ClaudeCode
    from teamalloc.data.formats.codex import Codex
    from teamalloc.data.formats.mini_swe import MiniSwe
    from teamalloc.data.formats.native import Native

    readers: tuple[Format, ...] = (Native(), ClaudeCode(), Codex(), MiniSwe())
    return {reader.name: reader for reader in readers}
