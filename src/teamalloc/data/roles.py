"""Which stage each agent worked in, told by what it did.

Any change of a file makes an implementer. Else an agent that ran commands and was started when
the editing was over is a verifier; else it looked and thought: a planner. Of an agent that called
neither a tool nor a model nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from teamalloc.data.formats import AgentTrace
from teamalloc.data.run import AgentRole


def infer_roles(agents: Sequence[AgentTrace]) -> Mapping[str, AgentRole]:
    """Return the role of each agent by its id; a role that the log states is kept."""
    return {agent.agent_id: _role(agent, agents) for agent in agents}


def _role(agent: AgentTrace, agents: Sequence[AgentTrace]) -> AgentRole:
    if agent.role is not None:
        return agent.role
    if agent.agent_id == "lead":
        return "lead"
    if agent.n_edits or agent.edit_times:
        return "implementer"
    if not (agent.n_tools or agent.n_commands or agent.requests or agent.usage_missing):
        return "unknown"
    last_edit = _last_edit_around(agent, agents)
    if (
        agent.n_commands
        and agent.started_at is not None
        and last_edit is not None
        and agent.started_at > last_edit
    ):
        return "verifier"
    return "planner"


def _last_edit_around(agent: AgentTrace, agents: Sequence[AgentTrace]) -> datetime | None:
    """The last edit by the parent or by its other helpers; None if unknown or there is none.

    A lead that has its implementers do the editing edits nothing itself, and yet what is started
    after them checks their work.
    """
    parent = agent.parent_id or "lead"
    around = [
        other
        for other in agents
        if other is not agent
        and (other.agent_id == parent or (other.parent_id or "lead") == parent)
    ]
    if any(other.n_edits > len(other.edit_times) for other in around):
        return None  # an edit without a time might be later than anything
    return max((at for other in around for at in other.edit_times), default=None)
