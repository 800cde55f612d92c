"""One row of a Claude Code log, reduced to what is counted.

What people and models wrote is looked at here (is this a prompt, an interruption, a notice?) and
then dropped: a ``Row`` holds counts, identifiers, times and names of tools only.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal

from teamalloc.data.run import Tokens

Record = dict[str, Any]

EDIT_TOOLS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit", "ApplyPatch", "apply_patch"})
COMMAND_TOOLS = frozenset({"Bash", "PowerShell"})
SPAWN_TOOLS = frozenset({"Agent", "Task"})
PERSON_TOOLS = frozenset({"AskUserQuestion", "ExitPlanMode"})
"their result comes when a person answers"

PromptKind = Literal["human", "command", "machine", "local"]
"""A person's words; a slash command, which may or may not reach the model; a message from another
agent or a finished background task; output of something done without the model."""

_MACHINE = ("<task-notification", "<teammate-message")
_LOCAL = ("<local-command-", "<bash-", "<system-reminder")
_COMMAND = ("<command-name>", "<command-message>")
_INTERRUPTED = "[Request interrupted by user"
_SYNTHETIC = "<synthetic>"
_AGENT_ID_IN_TEXT = re.compile(r"agentId: ([0-9A-Za-z_-]+)")
_WORD = re.compile(r"[0-9A-Za-z_.-]{1,40}")


@dataclass(slots=True)
class Usage:
    """Tokens of one response as one row states them."""

    tokens: Tokens
    prompt: tuple[int, int, int]
    "fresh, read from cache, written to cache: equal on all rows of a response"


@dataclass(slots=True)
class Answer:
    """One row's account of a model's response; several rows may tell of the same one."""

    message_id: str | None
    request_id: str | None
    model: str | None
    usage: Usage | None
    effort: str | None
    speed: str | None
    service_tier: str | None
    cost_usd: Decimal | None
    finished: bool
    "it has a stop reason, so its output is final"

    @property
    def output(self) -> int:
        """Output tokens, -1 where unknown: any known number is more complete."""
        return -1 if self.usage is None else self.usage.tokens.output


@dataclass(slots=True)
class Call:
    """A tool call."""

    tool_use_id: str
    name: str
    label: str | None = None
    "kind of agent asked for"
    asked_model: str | None = None
    prompt_hash: bytes | None = None


@dataclass(slots=True)
class Result:
    """A tool's result, as far as it tells of an agent."""

    tool_use_id: str
    agent_id: str | None
    label: str | None
    model: str | None
    usage: Usage | None
    "of the agent's last response only"


@dataclass(slots=True)
class Row:
    """A row that counts: of a user, an assistant or the system."""

    kind: Literal["user", "assistant", "system"]
    at: datetime | None
    uuid: str | None
    parent_uuid: str | None
    session_id: str | None
    agent_id: str | None
    sidechain: bool
    forked: bool
    "marked as a copy from another session"
    meta: bool = False
    prompt: PromptKind | None = None
    prompt_hash: bytes | None = None
    answer: Answer | None = None
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    stop_reason: str | None = None
    interrupted: bool = False
    api_error: bool = False
    turn_over: bool = False
    retry_s: float | None = None


def row_of(record: Record) -> Row | None:
    """What counts in a record; None if nothing does (most kinds of rows, copies in progress rows)."""
    message = record.get("message")
    message = message if isinstance(message, dict) else {}
    kind = record.get("type", message.get("role"))
    if kind not in ("user", "assistant", "system"):
        return None
    row = Row(
        kind=kind,
        at=instant(record.get("timestamp")),
        uuid=_text(record.get("uuid")),
        parent_uuid=_text(record.get("parentUuid")),
        session_id=_text(record.get("sessionId")),
        agent_id=_text(record.get("agentId")),
        sidechain=record.get("isSidechain") is True,
        forked=isinstance(record.get("forkedFrom"), dict),
        meta=record.get("isMeta") is True or record.get("isCompactSummary") is True,
    )
    if kind == "assistant":
        _fill_assistant(row, record, message)
    elif kind == "user":
        _fill_user(row, record, message)
    else:
        _fill_system(row, record)
    return row


def _fill_assistant(row: Row, record: Record, message: Record) -> None:
    row.calls = tuple(_calls(message.get("content")))
    row.stop_reason = _text(message.get("stop_reason"))
    row.api_error = record.get("isApiErrorMessage") is True
    if row.api_error or message.get("model") == _SYNTHETIC:
        return  # written by the client itself: no model answered
    usage = message.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    row.answer = Answer(
        message_id=_text(message.get("id")),
        request_id=_text(record.get("requestId")),
        model=_text(message.get("model")),
        usage=usage_of(usage),
        effort=_word(record.get("perTurnEffort")) or _word(record.get("effort")),
        speed=_word(usage.get("speed")),
        service_tier=_word(usage.get("service_tier")),
        cost_usd=_dollars(record.get("costUSD")),
        finished=row.stop_reason is not None,
    )


def _fill_user(row: Row, record: Record, message: Record) -> None:
    content = message.get("content")
    row.results = tuple(_results(content, record.get("toolUseResult")))
    if row.results or row.meta:
        return
    text = next(_texts(content), "")
    if text.startswith(_INTERRUPTED):
        row.interrupted = True
        return
    row.prompt = _prompt_kind(record, text)
    row.prompt_hash = None if row.prompt == "local" else _hash(text)


def _fill_system(row: Row, record: Record) -> None:
    subtype = record.get("subtype")
    row.turn_over = subtype in ("turn_duration", "stop_hook_summary")
    retry_ms = record.get("retryInMs")
    if subtype == "api_error" and isinstance(retry_ms, int | float) and 0 <= retry_ms < 1e9:
        row.retry_s = float(retry_ms) / 1000


def _prompt_kind(record: Record, text: str) -> PromptKind:
    origin = record.get("origin")
    by = origin.get("kind") if isinstance(origin, dict) else None
    if by not in (None, "human") or record.get("promptSource") == "system":
        return "machine"
    start = text.lstrip()
    if start.startswith(_MACHINE):
        return "machine"
    if start.startswith(_LOCAL):
        return "local"
    return "command" if start.startswith(_COMMAND) else "human"


def _calls(content: object) -> Iterator[Call]:
    for block in _blocks(content, "tool_use"):
        name, tool_use_id = _text(block.get("name")), _text(block.get("id"))
        if name is None or tool_use_id is None:
            continue
        call = Call(tool_use_id, name)
        asked = block.get("input")
        if name in SPAWN_TOOLS and isinstance(asked, dict):
            call.label = _text(asked.get("subagent_type"))
            call.asked_model = _text(asked.get("model"))
            prompt = _text(asked.get("prompt"))
            call.prompt_hash = None if prompt is None else _hash(prompt)
        yield call


def _results(content: object, told: object) -> Iterator[Result]:
    told = told if isinstance(told, dict) else {}
    for block in _blocks(content, "tool_result"):
        tool_use_id = _text(block.get("tool_use_id")) or ""
        agent_id = _text(told.get("agentId"))
        if agent_id is None:
            tails = (text[-400:] for text in _texts(block.get("content")))
            found = next(filter(None, map(_AGENT_ID_IN_TEXT.search, tails)), None)
            agent_id = found.group(1) if found else None
        last = told.get("usage")
        yield Result(
            tool_use_id,
            agent_id,
            _text(told.get("agentType")),
            _text(told.get("resolvedModel")),
            usage_of(last) if isinstance(last, dict) else None,
        )


def _blocks(content: object, kind: str) -> Iterator[Record]:
    if isinstance(content, list):
        for block in content:
            if isinstance(block, dict) and block.get("type") == kind:
                yield block


def _texts(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for block in _blocks(content, "text"):
        text = block.get("text")
        if isinstance(text, str):
            yield text


def usage_of(usage: Record) -> Usage | None:
    """Tokens by kind; None where the log does not know them.

    ``cache_creation`` is a split of ``cache_creation_input_tokens``, never more on top; what it
    leaves out lives five minutes. All zeros is a client that was told nothing: no model answers
    an empty prompt with nothing.
    """
    fresh, output = _count(usage.get("input_tokens")), _count(usage.get("output_tokens"))
    if fresh is None or output is None:
        return None
    read = _count(usage.get("cache_read_input_tokens")) or 0
    split = usage.get("cache_creation")
    split = split if isinstance(split, dict) else {}
    hour = _count(split.get("ephemeral_1h_input_tokens")) or 0
    short = _count(split.get("ephemeral_5m_input_tokens")) or 0
    written = max(_count(usage.get("cache_creation_input_tokens")) or 0, hour + short)
    tokens = Tokens(fresh, read, written - hour, hour, output)
    return Usage(tokens, (fresh, read, written)) if tokens.total else None


def instant(value: object) -> datetime | None:
    """An instant in UTC; a time without a zone is taken as UTC."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if value >= 0 and value == value // 1 and value < 2**53 else None


def _dollars(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    amount = Decimal(str(value))
    return amount if amount.is_finite() and amount >= 0 else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and _WORD.fullmatch(value) else None


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
