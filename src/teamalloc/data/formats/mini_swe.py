"""mini-swe-agent trajectories: one JSON document for each run of one agent.

Version 2 and 1 store the model's response with each message, version 0 is a bare list of messages
without usage. A response may sit on a message of any role: a reply that could not be parsed is
stored with the *user* message that complains about it, and was billed all the same. So the calls
are counted from the responses, never from the agent's own totals, which leave such replies out.

Input tokens as LiteLLM writes them include what was read from and written to a cache.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec

from teamalloc.data.formats import AgentTrace, OnReject, Reject, Request, Session
from teamalloc.data.formats.score_files import Score, find_score, is_companion
from teamalloc.data.run import Limits, Status, Tokens

MAX_BYTES = 512 << 20
"a larger document is refused: it must be held in memory as a whole"

_SUFFIX = ".traj.json"
_MARKS = (b'"mini-swe-agent-', b'"minisweagent.', b'"mini_version"')
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_EXITS: Mapping[str, Status] = {"Submitted": "done", "LimitsExceeded": "over_budget"}

Json = Mapping[str, Any]


class MiniSwe:
    """Reader of mini-swe-agent trajectories, with the benchmark scores beside them."""

    name = "mini_swe"
    version = 1

    def sniff(self, path: Path, head: bytes) -> bool:
        """Trajectories by name or content, and score files that lie beside one."""
        if is_companion(path):
            return _beside_trajectory(path)
        start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        if start == b"{" and any(mark in head for mark in _MARKS):
            return path.suffix == ".json"
        if not path.name.endswith(_SUFFIX):
            return False
        return b'"role"' in head if start == b"[" else start == b"{" and b'"info"' in head

    def read(self, paths: Sequence[Path], on_reject: OnReject) -> Iterator[Session]:
        """Yield one session for each trajectory, in order of their start.

        A start is known only once the document is read, so the sessions wait for one another; the
        documents do not.
        """
        found = [_read_file(path, on_reject) for path in paths if not is_companion(path)]
        sessions = [session for session in found if session is not None]
        yield from sorted(sessions, key=lambda session: session.started_at or _LONG_AGO)


def _beside_trajectory(path: Path) -> bool:
    pattern = f"*{_SUFFIX}"
    return any(path.parent.glob(pattern)) or any(path.parent.glob(f"*/{pattern}"))


def _read_file(path: Path, on_reject: OnReject) -> Session | None:
    try:
        n_bytes = path.stat().st_size
        if n_bytes > MAX_BYTES:
            on_reject(Reject(path, f"trajectory of {n_bytes} bytes is larger than {MAX_BYTES}"))
            return None
        body = path.read_bytes()
    except OSError as error:
        on_reject(Reject(path, f"cannot be read: {error.strerror or error}"))
        return None
    document = _decode(path, body, on_reject)
    if document is None:
        return None
    messages = document.get("messages")
    if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
        on_reject(Reject(path, "not a mini-swe-agent trajectory: it has no list of messages"))
        return None
    return _Trajectory(path, body, document, messages, on_reject).session()


def _decode(path: Path, body: bytes, on_reject: OnReject) -> Json | None:
    body = body.removeprefix(b"\xef\xbb\xbf")
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        try:
            # Python's own writer also writes NaN, which only Python's own reader takes.
            value = json.loads(body.decode("utf-8", "replace"))
        except (ValueError, RecursionError) as error:
            on_reject(Reject(path, f"not JSON, perhaps cut short: {error}"))
            return None
    if isinstance(value, list):
        return {"messages": value}
    if isinstance(value, dict):
        return value
    on_reject(Reject(path, "not a mini-swe-agent trajectory: neither an object nor a list"))
    return None


class _Trajectory:
    """One decoded document and what is worked out from it."""

    def __init__(
        self,
        path: Path,
        body: bytes,
        document: Json,
        messages: Sequence[Json],
        on_reject: OnReject,
    ) -> None:
        self.path = path
        self.body = body
        self.document = document
        self.messages = messages
        self.on_reject = on_reject
        self.info = _object(document, "info")
        config = _object(self.info, "config")
        self.agent = _object(config, "agent")
        self.model = _object(config, "model")
        self.model_name = _text(self.model.get("model_name"))
        self.stem = path.name.removesuffix(_SUFFIX).removesuffix(".json")

    def session(self) -> Session:
        calls = self._calls()
        instants = self._instants()
        instance = self._instance()
        score = find_score(self.path, self.stem, instance, self.on_reject) or self._own_score()
        start, end = (min(instants), max(instants)) if instants else (None, None)
        lead = AgentTrace(
            "lead",
            asked_model=self.model_name,
            requests=calls,
            intervals=[(start, end)] if start and end else [],
            started_at=start,
            usage_missing=all(call.tokens is None for call in calls),
        )
        lead.n_tools = lead.n_commands = sum(
            len(actions)
            for message in self.messages
            if isinstance(actions := _object(message, "extra").get("actions"), list)
        )
        return Session(
            session_id=f"mini-{self._identity()}",
            agents=[lead],
            digest=hashlib.sha256(self.body + (score.source if score else b"")).hexdigest(),
            started_at=start,
            ended_at=end,
            active_s=(end - start).total_seconds() if start and end else None,
            status=_status(self._exit()),
            task=instance,
            reward=score.reward if score else None,
            reward_source="log" if score else None,
            total_reported_usd=self._total_usd(calls),
            limits=Limits(
                budget_usd=_dollars(self.agent.get("cost_limit")) or None,
                wall_s=_positive(self.agent.get("wall_time_limit_seconds")),
            ),
            client="mini-swe-agent",
            client_version=_text(self.info.get("mini_version")),
        )

    def _identity(self) -> str:
        """The same for every copy of this run, another for every other run.

        The format has no id of a run, an instance is attempted many times, and ids of responses
        are unique only for hosted models (a local server starts again at ``chatcmpl-1``).
        """
        first = next((response for _, response in self._responses()), {})
        marks = [first.get("id"), first.get("created"), *map(str, self._instants()[:1])]
        if not any(marks):
            return hashlib.sha256(self.body).hexdigest()[:24]
        text = json.dumps([self._instance(), self.model_name, *marks], default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def _instance(self) -> str | None:
        """The benchmark's instance; a file name counts only where a benchmark gave it."""
        stated = _text(self.document.get("instance_id")) or _text(self.info.get("instance_id"))
        if stated is not None:
            return stated
        evaluated = self.path.with_name(f"{self.stem}.eval.json")
        named = self.path.parent.name == self.stem or evaluated.exists()
        return self.stem if named else None

    def _responses(self) -> Iterator[tuple[Json, Json]]:
        """Messages that carry a response of a model, and the response ({} = not kept as JSON)."""
        for message in self.messages:
            extra = _object(message, "extra")
            if message.get("object") == "response":
                yield message, message
            elif extra.get("response") is not None:
                yield message, _object(extra, "response")
            elif message.get("role") == "assistant":
                yield message, {}

    def _calls(self) -> list[Request]:
        identity = self._identity()
        calls: dict[str, Request] = {}
        for n, (message, response) in enumerate(self._responses()):
            response_id = _text(response.get("id"))
            usage = response.get("usage")
            # A gateway may give every response the same id: only a repeat in all parts is one.
            name = f"{response_id}:{_fingerprint(response)}" if response_id else f"#{n}"
            key = f"mini_swe:{identity}:{name}"
            extra = _object(message, "extra")
            calls.setdefault(
                key,
                Request(
                    key,
                    at=_instant(extra.get("timestamp")) or _created(response),
                    model=_text(response.get("model")) or self.model_name,
                    tokens=self._tokens(n, usage) if isinstance(usage, dict) else None,
                    effort=self._effort(),
                    service_tier=_text(response.get("service_tier")),
                    cost_reported_usd=self._cost_usd(usage, extra),
                ),
            )
        return list(calls.values())

    def _tokens(self, n: int, usage: Json) -> Tokens | None:
        try:
            return read_usage(usage)
        except ValueError as error:
            self.on_reject(Reject(self.path, f"usage of model call {n + 1}: {error}"))
            return None

    def _cost_usd(self, usage: object, extra: Json) -> Decimal | None:
        """What the provider says (a 0 is a 0), else what the agent worked out.

        The agent writes 0 where it could not find a price and was told not to mind.
        """
        if isinstance(usage, dict) and (billed := _dollars(usage.get("cost"))) is not None:
            return billed
        cost = _dollars(extra.get("cost"))
        if cost == 0 and self.model.get("cost_tracking") != "default":
            return None
        return cost

    def _total_usd(self, calls: Sequence[Request]) -> Decimal | None:
        """The agent's total, where no call has a cost of its own (version 1)."""
        if any(call.cost_reported_usd is not None for call in calls):
            return None
        return _dollars(_object(self.info, "model_stats").get("instance_cost")) or None

    def _effort(self) -> str | None:
        kwargs = _object(self.model, "model_kwargs")
        stated = kwargs.get("reasoning_effort") or _object(kwargs, "reasoning").get("effort")
        return _text(stated)

    def _instants(self) -> list[datetime]:
        """When things happened; the first response's creation is the nearest bound of the start."""
        found = [_created(response) for _, response in self._responses()][:1]
        found += [
            _instant(_object(message, "extra").get("timestamp", message.get("timestamp")))
            for message in self.messages
        ]
        return [instant for instant in found if instant is not None]

    def _exit(self) -> str:
        last = _object(self.messages[-1], "extra") if self.messages else {}
        return _text(self.info.get("exit_status")) or _text(last.get("exit_status")) or ""

    def _own_score(self) -> Score | None:
        for key in ("score", "resolved"):
            value = self.info.get(key)
            if isinstance(value, bool | int | float) and 0 <= value <= 1:
                return Score(float(value), b"")
        return None


def read_usage(usage: Json) -> Tokens:
    """Tokens of one response from an OpenAI-like ``usage`` object (chat or responses API).

    The prompt includes what was read from and written to a cache, unless the total proves that
    they stand beside it.

    Raises:
        ValueError: a number is missing or wrong, or a part is larger than its whole.
    """
    chat = "prompt_tokens" in usage
    prompt = _count(usage, "prompt_tokens" if chat else "input_tokens")
    output = _count(usage, "completion_tokens" if chat else "output_tokens")
    if prompt is None or output is None:
        raise ValueError("it has no number of input or output tokens")
    details = _object(usage, "prompt_tokens_details" if chat else "input_tokens_details")
    output_details = _object(
        usage, "completion_tokens_details" if chat else "output_tokens_details"
    )
    read = _first(_count(details, "cached_tokens"), _count(usage, "cache_read_input_tokens"))
    written = _first(
        _count(details, "cache_creation_tokens"),
        _count(details, "cache_write_tokens"),
        _count(usage, "cache_creation_input_tokens"),
    )
    written_1h = _first(
        _count(_object(details, "cache_creation_token_details"), "ephemeral_1h_input_tokens")
    )
    reasoning = _first(_count(output_details, "reasoning_tokens"))
    total = _count(usage, "total_tokens")
    if total is not None and reasoning and total == prompt + output + reasoning:
        output += reasoning
    cached = read + written
    beside = total == prompt + cached + output if total is not None else cached > prompt
    fresh = prompt if cached and beside else prompt - cached
    if fresh < 0 or written_1h > written:
        raise ValueError(f"{cached} cached tokens are more than the {prompt} of the prompt")
    return Tokens(fresh, read, written - written_1h, written_1h, output)


def _count(value: Json, key: str) -> int | None:
    """A number of tokens; None if it is not given."""
    number = value.get(key)
    if number is None:
        return None
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise ValueError(f"{key} is {number!r}")
    return number


def _first(*counts: int | None) -> int:
    """The first count that is given; 0 if a provider lists none: it had nothing to count."""
    return next((count for count in counts if count is not None), 0)


def _status(exit_status: str) -> Status:
    if not exit_status:
        return "unknown"
    if "Time" in exit_status:
        return "timed_out"
    if "Interrupt" in exit_status:
        return "cancelled"
    return _EXITS.get(exit_status, "failed")


def _fingerprint(response: Json) -> str:
    parts = [response.get("created", response.get("created_at")), response.get("usage")]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


def _created(response: Json) -> datetime | None:
    return _instant(response.get("created", response.get("created_at")))


def _instant(value: object) -> datetime | None:
    """A Unix time in seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        return None
    try:
        return datetime.fromtimestamp(value, UTC)
    except (OverflowError, OSError, ValueError):
        return None


def _dollars(value: object) -> Decimal | None:
    """A finite amount of at least 0; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return Decimal(str(value)) if math.isfinite(value) and value >= 0 else None


def _positive(value: object) -> float | None:
    """A limit in seconds; the agent writes 0 for none."""
    seconds = _dollars(value)
    return float(seconds) if seconds else None


def _object(value: Json, key: str) -> Json:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str | None:
    """Text that can be written out again (JSON may hold half a character), None if there is none."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) and value else None
