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
    name = getattr(tool, "name", None)
    if name and isinstance(name, str):
        return tool
    name = getattr(tool, "__name__", None)
    if callable(tool) and isinstance(name, str) and name.isidentifier():
        made = agents.function_tool(tool)
        keep_declaration(made, tool)
        return made
    raise ToolNameRequiredError(tool=tool)


def coerce_tools(tools: Iterable[Any]) -> list[Any]:
    """Return SDK tools in order; of several functions with one name the last one stays (as in 0.1.x)."""
    # Hosted tools share the name of their kind, and a namespace makes equal names different tools.
    named: dict[Any, Any] = {}
    for given in tools:
        if type(given) is agents.FunctionTool and given._tool_namespace is None:  # most are: no more is asked
            name = given.name
            if name and type(name) is str:
                named[name] = given
                continue
        tool = coerce_tool(given)
        named[function_name(tool) or id(tool)] = tool
    return list(named.values())


def function_name(tool: Any) -> str | None:
    """Return the name, with its namespace, that no other function tool may have; None for other kinds."""
    if not isinstance(tool, agents.FunctionTool):
        return None
    return tool.qualified_name
