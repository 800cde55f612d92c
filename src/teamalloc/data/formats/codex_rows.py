"""Rows of a Codex rollout file, reduced to what counting needs. No text of a row is kept.

A row is ``{timestamp, type, payload[, ordinal]}``. Client versions differ in which events they
write; each kind of row is recognised here and nowhere else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from teamalloc.data.run import Status

Json = Mapping[str, Any]

ROW_TYPES = frozenset(
    {
        "session_meta",
        "turn_context",
        "response_item",
        "event_msg",
        "compacted",
        "token_usage_record",
        "world_state",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
        "realtime_item",
        "retained_context",
    }
)
_SHELLS = {"shell", "shell_command", "exec_command", "local_shell", "container.exec"}
_REPLIES = {"agent_message", "agent_reasoning", "AgentMessage", "Reasoning"}
_ABORTS: Mapping[str, Status] = {"budget_limited": "over_budget", "review_ended": "done"}


class Usage(NamedTuple):
    """Tokens as Codex counts them: cached and written are parts of the input."""

    input: int
    cached: int
    written: int
    output: int

    def since(self, before: Usage) -> Usage:
        """What was added to a running total; a part is negative if the counter was reset."""
        return Usage(*(now - then for now, then in zip(self, before, strict=True)))


@dataclass(frozen=True, slots=True)
class Meta:
    """Head of a thread's file: a ``session_meta`` row."""

    thread_id: str | None = None
    root_id: str | None = None
    "root of the tree of agents, as newer clients write it"
    parent_id: str | None = None
    "thread that started this one"
    forked_from: str | None = None
    "thread whose history this one continues"
    kind: str | None = None
    'None = a thread of the user\'s; "spawn" = an agent another thread started; else a service of '
    "the client's own: review, compact, guardian …"
    label: str | None = None
    agent_path: str | None = None
    first_own_ordinal: int | None = None
    "rows before it are copied from another thread"
    has_base: bool = False
    "its history stays in the other thread's file: nothing is copied"
    cwd: str | None = None
    branch: str | None = None
    client_version: str | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """Settings of a turn."""

    turn_id: str | None
    model: str | None
    effort: str | None


@dataclass(frozen=True, slots=True)
class Count:
    """A running total."""

    last: Usage | None
    "of the newest response, as the client understands it"
    total: Usage | None
    "of the thread; None = it could not be read"
    model: str | None


@dataclass(frozen=True, slots=True)
class Record:
    """Usage of one response."""

    thread_id: str | None
    response_id: str | None
    turn_id: str | None
    usage: Usage | None
    "None = it could not be read"


@dataclass(frozen=True, slots=True)
class Start:
    """A turn begins."""

    turn_id: str | None


@dataclass(frozen=True, slots=True)
class End:
    """A turn ends."""

    status: Status


@dataclass(frozen=True, slots=True)
class Call:
    """The model calls a tool."""

    is_edit: bool
    is_command: bool


@dataclass(frozen=True, slots=True)
class Edit:
    """Files are changed by one patch."""

    patch_id: str
    worked: bool


@dataclass(frozen=True, slots=True)
class Spawn:
    """An agent is started, or named as the result of a call that starts one."""

    call_id: str | None = None
    child: str | None = None
    "thread id, or the last part of its path"
    model: str | None = None
    "asked for"
    is_call: bool = False
    "this is the model's call, not the client's note of it"


@dataclass(frozen=True, slots=True)
class Sign:
    """A row of which only the kind counts."""

    kind: str
    '"prompt" of a person, "reply" or "no usage" of a model, "command", "error", or "" for any other'


Content = Meta | Context | Count | Record | Start | End | Call | Edit | Spawn | Sign

_OTHER = Sign("")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a file."""

    path: Path
    line: int
    at: datetime | None
    ordinal: int | None
    content: Content
    faults: tuple[str, ...] = field(default=())
    "what could not be read in it"


def read_row(path: Path, line: int, record: Json) -> Row:
    """Reduce one decoded row."""
    kind, payload = record.get("type"), record.get("payload")
    faults: list[str] = []
    content: Content = _OTHER
    if isinstance(payload, dict):
        if kind == "session_meta":
            content = _meta(payload)
        elif kind == "turn_context":
            content = Context(
                text(payload.get("turn_id")),
                text(payload.get("model")),
                text(payload.get("effort")),
            )
        elif kind == "token_usage_record":
            content = _record(payload, faults)
        elif kind == "response_item":
            content = _item(payload)
        elif kind == "event_msg":
            content = _event(payload, faults)
    at = instant(record.get("timestamp"))
    return Row(path, line, at, _whole(record.get("ordinal")), content, tuple(faults))


def _meta(payload: Json) -> Meta:
    source = _inner(payload, "source").get("subagent")
    spawn = _inner(source, "thread_spawn") if isinstance(source, dict) else {}
    base = _inner(payload, "history_base")

    def named(key: str) -> str | None:
        return text(spawn.get(key)) or text(payload.get(key))

    return Meta(
        thread_id=text(payload.get("id")),
        root_id=text(payload.get("session_id")),
        parent_id=named("parent_thread_id"),
        forked_from=text(payload.get("forked_from_id")),
        kind=_thread_kind(source, text(payload.get("thread_source"))),
        label=named("agent_role") or _path_label(named("agent_path")) or named("agent_nickname"),
        agent_path=named("agent_path"),
        first_own_ordinal=_first_own_ordinal(payload, base),
        has_base=bool(base),
        cwd=text(payload.get("cwd")),
        branch=text(_inner(payload, "git").get("branch")),
        client_version=text(payload.get("cli_version")),
    )


def _thread_kind(source: object, thread_source: str | None) -> str | None:
    if isinstance(source, str) and source:
        return source
    if isinstance(source, dict) and source:
        return "spawn" if "thread_spawn" in source else text(source.get("other")) or "other"
    if thread_source == "subagent":
        return "spawn"
    return thread_source if thread_source == "memory_consolidation" else None


def _path_label(agent_path: str | None) -> str | None:
    """An agent's path in its tree (``/root/inspect``); of anything else only the last part."""
    if agent_path is None or agent_path.startswith("/root/"):
        return agent_path
    return agent_path.rstrip("/").rpartition("/")[2] or None


def _first_own_ordinal(payload: Json, base: Json) -> int | None:
    start = _whole(payload.get("subagent_history_start_ordinal"))
    return _whole(base.get("end_ordinal_exclusive")) if start is None else start


def _record(payload: Json, faults: list[str]) -> Record:
    return Record(
        text(payload.get("thread_id")),
        text(payload.get("response_id")),
        text(payload.get("turn_id")),
        _usage(payload.get("usage"), faults),
    )


def _event(payload: Json, faults: list[str]) -> Content:
    kind = str(payload.get("type"))
    match kind:
        case "token_count":
            return _count(payload.get("info"), faults)
        case "task_started" | "turn_started":
            return Start(text(payload.get("turn_id")))
        case "task_complete" | "turn_complete":
            return End("failed" if payload.get("error") else "done")
        case "turn_aborted":
            return End(_ABORTS.get(str(payload.get("reason")), "cancelled"))
        case "user_message":
            return Sign("prompt")
        case "error":
            return Sign("error")
        case "exec_command_end":
            return Sign("command")
        case "patch_apply_begin" | "patch_apply_end":
            worked = kind == "patch_apply_begin" or payload.get("success") is not False
            return Edit(str(payload.get("call_id")), worked)
        case "collab_agent_spawn_end":
            return Spawn(None, text(payload.get("new_thread_id")), text(payload.get("model")))
        case "item_completed":
            return _completed(_inner(payload, "item"))
    return Sign("reply") if kind in _REPLIES else _OTHER


def _completed(item: Json) -> Content:
    kind, model = str(item.get("type")), text(item.get("model"))
    match kind:
        case "UserMessage":
            return Sign("prompt")
        case "CommandExecution":
            return Sign("command")
        case "FileChange":
            return Edit(str(item.get("id")), item.get("status") == "completed")
        case "SubAgentActivity":
            return Spawn(text(item.get("id")), text(item.get("agent_thread_id")), model)
        case "CollabAgentToolCall" if item.get("tool") == "spawn_agent":
            children = item.get("receiver_thread_ids")
            child = children[0] if isinstance(children, list) and children else None
            return Spawn(text(item.get("id")), text(child), model)
    return Sign("reply") if kind in _REPLIES else _OTHER


def _count(info: object, faults: list[str]) -> Content:
    if not isinstance(info, dict):
        return Sign("no usage")  # rate limits only
    last = info.get("last_token_usage")
    return Count(
        _usage(last, faults) if last is not None else None,
        _usage(info.get("total_token_usage"), faults),
        text(info.get("model")),
    )


def _usage(value: object, faults: list[str]) -> Usage | None:
    if not isinstance(value, dict):
        faults.append("usage is not an object")
        return None
    counts = []
    for key in ("input", "cached_input", "cache_write_input", "output"):
        n = value.get(f"{key}_tokens")
        if n is None and key in ("cached_input", "cache_write_input"):
            n = 0  # a client that does not write it knows no such tokens
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            faults.append(f"{key}_tokens is {n!r}")
            return None
        counts.append(n)
    return Usage(*counts)


def _item(payload: Json) -> Content:
    kind, name = str(payload.get("type")), text(payload.get("name"))
    if kind == "function_call" and name == "spawn_agent":
        asked = _arguments(payload)
        child = text(asked.get("task_name"))
        return Spawn(text(payload.get("call_id")), child, text(asked.get("model")), is_call=True)
    if kind == "function_call_output":
        return _spawned(payload)
    if kind.endswith("_call"):
        return _call(kind, name, payload)
    is_reply = kind == "reasoning" or payload.get("role") == "assistant"
    return Sign("reply") if is_reply else _OTHER


def _call(kind: str, name: str | None, payload: Json) -> Call:
    told = str(payload.get("arguments") or payload.get("input") or payload.get("action") or "")
    if name == "apply_patch":
        return Call(is_edit=True, is_command=False)
    if kind == "local_shell_call" or name in _SHELLS:
        is_edit = "apply_patch" in told
        return Call(is_edit, is_command=not is_edit)
    if name == "exec":  # a script of the model's that calls the other tools
        return Call("apply_patch(" in told, "exec_command(" in told)
    return Call(is_edit=False, is_command=False)


def _spawned(payload: Json) -> Content:
    """Older clients name the new thread only in the output of the call."""
    output = payload.get("output")
    if not isinstance(output, str) or '"agent_id"' not in output:
        return _OTHER
    child = text(_parsed(output).get("agent_id"))
    return Spawn(text(payload.get("call_id")), child) if child else _OTHER


def _arguments(payload: Json) -> Json:
    arguments = payload.get("arguments")
    return _parsed(arguments) if isinstance(arguments, str) else {}


def _parsed(body: str) -> Json:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def instant(value: object) -> datetime | None:
    """An ISO 8601 instant; one without zone is UTC, as Codex writes."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def text(value: object) -> str | None:
    """A string that is not empty, else None."""
    return value if isinstance(value, str) and value else None


def _inner(value: Json, key: str) -> Json:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
