"""The agents that a run can reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import agents
from agents import Handoff, Tool

from kantan_agents.agent import Agent, agent_of
from kantan_agents.agent.delegation.altered_tool import agents_of_tool
from kantan_agents.subagent_files import AgentDefinition


def represented(target: Any) -> Any:
    """Return the Agent behind an SDK agent."""
    owner = agent_of(target)
    return target if owner is None or (target is not owner and owner.sdk_agent is not target) else owner


def target_of(handoff: Any) -> Any:
    """Return the agent that takes over, if known."""
    if not isinstance(handoff, Handoff):
        return represented(handoff)
    known = getattr(handoff, "_agent_ref", None)
    target = known() if known is not None else None
    return None if target is None else represented(target)


def asked_by(tool: Any) -> Any:
    """Return the agent that a tool runs, if any."""
    target = getattr(tool, "_agent_instance", None)
    return None if target is None else represented(target)


def tools_of(agent: Any) -> list[Tool]:
    """Return the given tools of an agent."""
    if isinstance(agent, Agent):
        return [agent.sdk_agent.as_given(tool) for tool in agent.tools]
    return list(agent.tools)


class Reached:
    """The agents within reach by handoffs, as tools, and by delegation."""

    def __init__(self, start: Agent[Any], delegated: Mapping[int, Sequence[AgentDefinition]]) -> None:
        self.start = start
        self.agents: list[Any] = [start]
        self._delegated = delegated
        self._sources: dict[int, list[Any]] = {}
        for agent in self.agents:
            for target in _targets(agent):
                self._sources.setdefault(id(target), []).append(agent)
                if not any(target is known for known in self.agents):
                    self.agents.append(target)

    @classmethod
    async def from_agent(cls, start: Agent[Any]) -> Reached:
        """Return the agents within reach, even through delegation tools."""
        found = {
            id(tool): await agents_of_tool(tool)
            for agent in cls(start, {}).agents
            for tool in tools_of(agent)
        }
        return cls(start, found)

    def named(self, name: str) -> list[Any]:
        """Return the agents of this name, except in delegation tools."""
        return [agent for agent in self.agents if agent.name == name]

    def delegations(self) -> Iterator[tuple[Any, Any, AgentDefinition]]:
        """Yield each agent, delegation tool and definition."""
        for agent in self.agents:
            for tool in tools_of(agent):
                for definition in self._delegated.get(id(tool), ()):
                    yield agent, tool, definition

    def names(self) -> set[str]:
        """Return the names of all agents."""
        return {str(agent.name) for agent in self.agents} | {one.name for _, _, one in self.delegations()}

    def with_prompt(self, prompt: str) -> set[str]:
        """Return the names of the agents with a prompt of this name."""
        own = [one for one in self.agents if isinstance(one, Agent)]
        found = {one.name for one in own if one.standard_metadata.get("prompt_name") == prompt}
        return found | {one.name for _, _, one in self.delegations() if one.name == prompt}

    def leading_to(self, targets: Sequence[Any]) -> set[int]:
        """Return the ids of the targets and of agents that lead there."""
        waiting = list(targets)
        found = {id(one) for one in waiting}
        for target in waiting:
            for source in self._sources.get(id(target), ()):
                if id(source) not in found:
                    found.add(id(source))
                    waiting.append(source)
        return found


def _targets(agent: Any) -> list[Any]:
    found = [target_of(handoff) for handoff in agent.handoffs]
    found += [asked_by(tool) for tool in tools_of(agent)]
    return [one for one in found if isinstance(one, agents.Agent)]
