"""Who started which helper of a Claude Code session, as what, and asking for which model."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from teamalloc.data.formats import AgentTrace, Request
from teamalloc.data.formats.claude_agents import AgentLog
from teamalloc.data.formats.claude_rows import Call, Result


@dataclass(slots=True)
class Origin:
    """What is known of a helper from outside its own rows."""

    parent_id: str
    label: str | None
    asked_model: str | None


class Spawns:
    """The calls that start helpers, and what their results tell of the helpers."""

    def __init__(self, logs: Collection[AgentLog]) -> None:
        self._calls: dict[str, tuple[str, Call]] = {}
        "tool call -> (agent that made it, the call)"
        self._told: dict[str, tuple[Result, datetime | None]] = {}
        "helper -> the first result that names it"
        for log in logs:
            for tool_use_id, call in log.did.spawns.items():
                self._calls[tool_use_id] = (log.agent_id, call)
        for log in logs:
            for result, at in log.did.results:
                if result.agent_id is not None and result.tool_use_id in self._calls:
                    self._told.setdefault(result.agent_id, (result, at))

    def origins(
        self,
        helpers: Mapping[str, AgentLog],
        metas: Mapping[str, Mapping[str, Any]],
        inline: Collection[str],
    ) -> dict[str, Origin]:
        """Where each helper comes from.

        The result of a call or the helper's own meta file names both; without them (compacted
        away, old versions) the prompt does, and for a helper inside the lead's file the order.
        """
        found = {agent_id: self._stated_call(agent_id, metas) for agent_id in helpers}
        free = {id_: call for id_, (_, call) in self._calls.items() if id_ not in found.values()}
        for agent_id, log in helpers.items():
            if found[agent_id] is not None:
                continue
            alike = (i for i, call in free.items() if call.prompt_hash == log.did.prompt_hash)
            tool_use_id = next(alike, None) if log.did.prompt_hash is not None else None
            if tool_use_id is None and agent_id in inline:
                tool_use_id = next(iter(free), None)
            if tool_use_id is not None:
                free.pop(tool_use_id)
            found[agent_id] = tool_use_id
        return {id_: self._origin(id_, found[id_], metas.get(id_, {})) for id_ in helpers}

    def lost(self, known: Collection[str]) -> Iterator[AgentTrace]:
        """Helpers that ran, but whose rows are not there: their use is unknown.

        The result of the call has tokens, but of the last response only.
        """
        for agent_id, (result, at) in self._told.items():
            if agent_id in known:
                continue
            parent_id, call = self._calls[result.tool_use_id]
            yield AgentTrace(
                agent_id=agent_id,
                parent_id=parent_id,
                label=result.label or call.label,
                asked_model=call.asked_model,
                requests=[Request(key=None, at=at, model=result.model, tokens=None)],
                usage_missing=True,
            )

    def _stated_call(self, agent_id: str, metas: Mapping[str, Mapping[str, Any]]) -> str | None:
        told = self._told.get(agent_id)
        stated = told[0].tool_use_id if told else metas.get(agent_id, {}).get("toolUseId")
        return stated if isinstance(stated, str) and stated in self._calls else None

    def _origin(self, agent_id: str, tool_use_id: str | None, meta: Mapping[str, Any]) -> Origin:
        parent_id, call = self._calls.get(tool_use_id or "", (None, None))
        told = self._told.get(agent_id)
        words = [
            meta.get("agentType"),
            told[0].label if told else None,
            call.label if call else None,
        ]
        asked = [call.asked_model if call else None, meta.get("model")]
        # without a trace of its start a helper is the lead's: nearly all are
        parents = [parent_id, meta.get("parentAgentId"), "lead"]
        return Origin(_first_text(parents) or "lead", _first_text(words), _first_text(asked))


def _first_text(values: list[Any]) -> str | None:
    return next((value for value in values if isinstance(value, str) and value), None)
