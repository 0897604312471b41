"""The agents behind a delegation tool, and ways to change them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from agents import FunctionTool

from kantan_agents.agent import Agent
from kantan_agents.agent.delegation.parent import parent_of
from kantan_agents.agent.delegation.task import DESCRIBED, DelegationTask
from kantan_agents.subagent_files import AgentDefinition
from kantan_agents.tools.listing import show_each_turn


async def agents_of_tool(tool: Any) -> Sequence[AgentDefinition]:
    """Return the agents that a tool can delegate to, if any."""
    task = _task_of(tool)
    return () if task is None else tuple(await task.loader.load_agents())


def child_of_tool(tool: FunctionTool, definition: AgentDefinition, parent: Any) -> Agent:
    """Return the agent that a delegation tool uses for ``parent``."""
    task = _task_of(tool)
    if task is None:
        raise TypeError(f"{tool.name} does not delegate")
    return task.child(definition, parent_of(SimpleNamespace(context={}), parent))


def with_children(tool: FunctionTool, change: Callable[[Agent[Any]], Agent[Any]]) -> FunctionTool:
    """Return a delegation tool with changed children; other tools unchanged."""
    task = _task_of(tool)
    if task is None:
        return tool
    task = task.with_children(change)
    copied = copy.copy(tool)
    vars(copied).pop(DESCRIBED, None)
    copied.on_invoke_tool = task.run
    show_each_turn(copied, task.current_tool)
    return copied


def _task_of(tool: Any) -> DelegationTask | None:
    owner = getattr(getattr(tool, "on_invoke_tool", None), "__self__", None)
    return owner if isinstance(owner, DelegationTask) else None
