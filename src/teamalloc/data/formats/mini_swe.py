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
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from teamalloc.data.formats import AgentTrace, OnReject, Reject, Request, Session
from teamalloc.data.formats.documents import read_document
from teamalloc.data.formats.score_files import Score, find_score, is_companion
from teamalloc.data.formats.usage import read_openai_usage
from teamalloc.data.formats.values import Json, dollars, inner, items, seconds, text, unix_instant
from teamalloc.data.run import Limits, Status, Tokens

_SUFFIX = ".traj.json"
_MARKS = (b'"mini-swe-agent-', b'"minisweagent.', b'"mini_version"')
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_EXITS: Mapping[str, Status] = {"Submitted": "done", "LimitsExceeded": "over_budget"}


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

    def links(self, path: Path, head: bytes) -> tuple[str, ...]:
        """A trajectory goes with the scores in its folder."""
        return (f"mini_swe:{path.parent}",)

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
    found = read_document(path, on_reject)
    if found is None:
        return None
    body, value = found
    document = {"messages": value} if isinstance(value, list) else value
    messages = items(document, "messages")
    if not messages or not all(isinstance(m, dict) for m in messages):
        on_reject(Reject(path, "not a mini-swe-agent trajectory: it has no list of messages"))
        return None
    return _Trajectory(path, body, document, messages, on_reject).session()


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
        self.info = inner(document, "info")
        config = inner(self.info, "config")
        self.agent = inner(config, "agent")
        self.model = inner(config, "model")
        self.model_name = text(self.model.get("model_name"))
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
            if isinstance(actions := inner(message, "extra").get("actions"), list)
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
                budget_usd=dollars(self.agent.get("cost_limit")) or None,
                wall_s=_limit_s(self.agent.get("wall_time_limit_seconds")),
            ),
            client="mini-swe-agent",
            client_version=text(self.info.get("mini_version")),
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
        marks_text = json.dumps([self._instance(), self.model_name, *marks], default=str)
        return hashlib.sha256(marks_text.encode()).hexdigest()[:24]

    def _instance(self) -> str | None:
        """The benchmark's instance; a file name counts only where a benchmark gave it."""
        stated = text(self.document.get("instance_id")) or text(self.info.get("instance_id"))
        if stated is not None:
            return stated
        evaluated = self.path.with_name(f"{self.stem}.eval.json")
        named = self.path.parent.name == self.stem or evaluated.exists()
        return self.stem if named else None

    def _responses(self) -> Iterator[tuple[Json, Json]]:
        """Messages that carry a response of a model, and the response ({} = not kept as JSON)."""
        for message in self.messages:
            extra = inner(message, "extra")
            if message.get("object") == "response":
                yield message, message
            elif extra.get("response") is not None:
                yield message, inner(extra, "response")
            elif message.get("role") == "assistant":
                yield message, {}

    def _calls(self) -> list[Request]:
        identity = self._identity()
        calls: dict[str, Request] = {}
        for n, (message, response) in enumerate(self._responses()):
            response_id = text(response.get("id"))
            usage = response.get("usage")
            # A gateway may give every response the same id: only a repeat in all parts is one.
            name = f"{response_id}:{_fingerprint(response)}" if response_id else f"#{n}"
            key = f"mini_swe:{identity}:{name}"
            extra = inner(message, "extra")
            calls.setdefault(
                key,
                Request(
                    key,
                    at=unix_instant(extra.get("timestamp")) or _created(response),
                    model=text(response.get("model")) or self.model_name,
                    tokens=self._tokens(n, usage) if isinstance(usage, dict) else None,
                    effort=self._effort(),
                    service_tier=text(response.get("service_tier")),
                    cost_reported_usd=self._cost_usd(usage, extra),
                ),
            )
        return list(calls.values())

    def _tokens(self, n: int, usage: Json) -> Tokens | None:
        try:
            return read_openai_usage(usage)
        except ValueError as error:
            self.on_reject(Reject(self.path, f"usage of model call {n + 1}: {error}"))
            return None

    def _cost_usd(self, usage: object, extra: Json) -> Decimal | None:
        """What the provider says (a 0 is a 0), else what the agent worked out.

        The agent writes 0 where it could not find a price and was told not to mind.
        """
        if isinstance(usage, dict) and (billed := dollars(usage.get("cost"))) is not None:
            return billed
        cost = dollars(extra.get("cost"))
        if cost == 0 and self.model.get("cost_tracking") != "default":
            return None
        return cost

    def _total_usd(self, calls: Sequence[Request]) -> Decimal | None:
        """The agent's total, where no call has a cost of its own (version 1)."""
        if any(call.cost_reported_usd is not None for call in calls):
            return None
        return dollars(inner(self.info, "model_stats").get("instance_cost")) or None

    def _effort(self) -> str | None:
        kwargs = inner(self.model, "model_kwargs")
        stated = kwargs.get("reasoning_effort") or inner(kwargs, "reasoning").get("effort")
        return text(stated)

    def _instants(self) -> list[datetime]:
        """When things happened; the first response's creation is the nearest bound of the start."""
        found = [_created(response) for _, response in self._responses()][:1]
        found += [
            unix_instant(inner(message, "extra").get("timestamp", message.get("timestamp")))
            for message in self.messages
        ]
        return [instant for instant in found if instant is not None]

    def _exit(self) -> str:
        last = inner(self.messages[-1], "extra") if self.messages else {}
        return text(self.info.get("exit_status")) or text(last.get("exit_status")) or ""

    def _own_score(self) -> Score | None:
        for key in ("score", "resolved"):
            value = self.info.get(key)
            if isinstance(value, bool | int | float) and 0 <= value <= 1:
                return Score(float(value), b"")
        return None


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
    return unix_instant(response.get("created", response.get("created_at")))


def _limit_s(value: object) -> float | None:
    """A limit in seconds; the agent writes 0 for none."""
    return seconds(value) or None
