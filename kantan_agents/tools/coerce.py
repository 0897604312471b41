"""Converts the tools that users pass, SDK tools or plain functions, to SDK tools."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import agents

from kantan_agents.errors import ToolNameRequiredError
from kantan_agents.tools.facts import copy_declaration


def coerce_tool(tool: Any) -> Any:
    """Return SDK tools unchanged and convert plain functions with ``agents.function_tool``.

    Raises:
        ToolNameRequiredError: E4, the object has no usable tool name.
    """
    name = getattr(tool, "name", None)
    if name and isinstance(name, str):
        return tool
    name = getattr(tool, "__name__", None)
    if callable(tool) and isinstance(name, str) and name.isidentifier():
        made = agents.function_tool(tool)
        copy_declaration(made, tool)
        return made
    raise ToolNameRequiredError(tool=tool)


def coerce_tools(tools: Iterable[Any]) -> list[Any]:
    """Return SDK tools in order; of several functions with the same name, the last one wins (as in 0.1.x)."""
    # Hosted tools share the name of their kind, and a namespace makes equal names different tools.
    named: dict[Any, Any] = {}
    for given in tools:
        if type(given) is agents.FunctionTool and given._tool_namespace is None:  # the usual case
            name = given.name
            if name and type(name) is str:
                named[name] = given
                continue
        tool = coerce_tool(given)
        named[function_name(tool) or id(tool)] = tool
    return list(named.values())


def function_name(tool: Any) -> str | None:
    """Return the unique name of a function tool, including its namespace; None for other kinds."""
    if not isinstance(tool, agents.FunctionTool):
        return None
    return tool.qualified_name
