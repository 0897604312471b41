"""Copies the agents that lead to a changed one."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from agents import FunctionTool, Handoff, Tool

from kantan_agents.agent import Agent
from kantan_agents.errors import InvalidChangeError
from kantan_agents.lab.experiment.reached import Reached, asked_by, represented, target_of, tools_of
from kantan_agents.tools.coerce import for_other_agent


class AgentCopies:
    """Copies of the agents that lead to a changed one, with cycles of handoffs."""

    def __init__(
        self, reached: Reached, changed: Mapping[int, Agent[Any]], alter: Callable[[Tool], Tool], what: str
    ) -> None:
        self._reached = reached  # keeps the agents alive whose ids are used
        self._changed = changed
        self._alter = alter
        self._what = what
        self._copied: dict[int, Any] = {}
        self._begun: set[int] = set()
        self._leading = reached.leading_to([one for one in reached.agents if self._is_other(one)])

    def _is_other(self, agent: Any) -> bool:
        if id(agent) in self._changed or any(self._alter(tool) is not tool for tool in tools_of(agent)):
            return True
        return any(target_of(handoff) is None for handoff in agent.handoffs)  # it may return any agent

    def start(self) -> Agent[Any]:
        """Return the copy of the agent that is run."""
        for agent in self._reached.agents:
            self._copy(agent)
        for agent in self._reached.agents:
            copied = self._copied.get(id(agent))
            if copied is None:
                continue
            copied.handoffs = [self._handoff(one) for one in agent.handoffs]
            if not isinstance(agent, Agent):
                copied.tools = [self._tool(tool) for tool in agent.tools]
        started: Agent[Any] = self._copied[id(self._reached.start)]
        return started

    def _copy(self, agent: Any) -> Any:
        if id(agent) not in self._leading:
            return agent
        if id(agent) not in self._copied:
            self._copied[id(agent)] = self._own_copy(agent) if isinstance(agent, Agent) else copy.copy(agent)
        return self._copied[id(agent)]

    def _own_copy(self, agent: Agent[Any]) -> Agent[Any]:
        # Handoffs may form cycles and are set afterwards. The tools of an agent are older than the agent,
        # unless someone has added to the SDK's list.
        if id(agent) in self._begun:
            reason = f"the agent {agent.name!r} asks itself by a tool"
            raise InvalidChangeError(change=self._what, reason=reason)
        self._begun.add(id(agent))
        base = self._changed.get(id(agent), agent)
        before = tools_of(base)
        tools = [self._tool(tool) for tool in before]
        if any(new is not old for new, old in zip(tools, before, strict=True)):
            return base.clone(tools=tools)
        return base.clone() if base is agent else base

    def _exchanged(self, target: Any) -> Any:
        agent = represented(target)
        copied = self._copied.get(id(agent), agent)
        return target if copied is agent else copied if target is agent else copied.sdk_agent

    def _tool(self, tool: Tool) -> Tool:
        asked = asked_by(tool)
        if asked is None or self._copy(asked) is asked:
            return self._alter(tool)
        copied = self._copy(asked)
        sdk_agent = copied.sdk_agent if isinstance(copied, Agent) else copied
        made = for_other_agent(tool, sdk_agent) if isinstance(tool, FunctionTool) else None
        if made is None:
            reason = (
                f"the SDK has made the tool {tool.name!r} of the agent {asked.name!r}, and it cannot ask a "
                "changed agent; give the agent itself in tools=[...], or use Agent.as_tool"
            )
            raise InvalidChangeError(change=self._what, reason=reason)
        return made

    def _handoff(self, handoff: Any) -> Any:
        if not isinstance(handoff, Handoff):
            return self._exchanged(handoff)
        known: Callable[[], Any] | None = getattr(handoff, "_agent_ref", None)
        target = known() if known is not None else None
        if target is not None and self._exchanged(target) is target:
            return handoff
        invoke = handoff.on_invoke_handoff

        async def exchange(context: Any, arguments: str) -> Any:
            return self._exchanged(await invoke(context, arguments))

        copied = copy.copy(handoff)
        copied.on_invoke_handoff = exchange
        if target is not None:
            copied._agent_ref = weakref.ref(self._exchanged(target))
        return copied
