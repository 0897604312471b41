"""From what users give as a tool to what the SDK takes as one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import agents

from kantan_agents.errors import ToolNameRequiredError
from kantan_agents.tools.facts import keep_declaration


def coerce_tool(tool: Any) -> Any:
    """Return an SDK tool: SDK tools as they are, plain functions through ``agents.function_tool``.

    Raises:
        ToolNameRequiredError: E4, the object has no name the model could call it by.
    """
    if isinstance(getattr(tool, "name", None), str) and tool.name:
        return tool
    name = getattr(tool, "__name__", None)
    if callable(tool) and isinstance(name, str) and name.isidentifier():
        made = agents.function_tool(tool)
        keep_declaration(made, tool)
        return made
    raise ToolNameRequiredError(tool=tool)


def coerce_tools(tools: Iterable[Any]) -> list[Any]:
    """Return SDK tools in order; of several functions with one name the last one stays (as in 0.1.x)."""
    named = {_identity(tool): tool for tool in map(coerce_tool, tools)}
    return list(named.values())


def _identity(tool: Any) -> Any:
    # Hosted tools share the name of their kind, and a namespace makes equal names different tools.
    if not isinstance(tool, agents.FunctionTool):
        return id(tool)
    return getattr(tool, "qualified_name", tool.name)
