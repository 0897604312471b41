"""Leaves the tool search to OpenAI's Responses API."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from agents import FunctionTool, ToolSearchTool

from kantan_agents.tool_rules.names import NamePatterns
from kantan_agents.tools.facts import facts_of
from kantan_agents.tools.retrieval.options import ToolRetrieval, known_names, own_names


def defer_loading_of(tools: Sequence[Any], options: ToolRetrieval, *, has_servers: bool = False) -> list[Any]:
    """Defer plain tools except ``always``; add OpenAI's search tool.

    E58 if ``always`` has an unknown name, unless MCP servers may offer it.
    """
    names = [tool.name for tool in tools]
    always = own_names(options.always, names) if has_servers else known_names(options.always, names)
    deferred = [_deferred(tool) if tool.name not in always else tool for tool in tools]
    return with_search_tool(deferred)


def defer_loading_of_served(tools: Iterable[Any], options: ToolRetrieval) -> None:
    """Defer tools of MCP servers except ``always``."""
    always = NamePatterns(options.always)
    for tool in tools:
        if isinstance(tool, FunctionTool) and not any(map(always.covering, facts_of(tool).names)):
            tool.defer_loading = True


def with_search_tool(tools: list[Any]) -> list[Any]:
    """Add the tool if others are deferred."""
    has_search = any(isinstance(tool, ToolSearchTool) for tool in tools)
    needs_search = any(getattr(tool, "defer_loading", False) for tool in tools)
    return [*tools, ToolSearchTool()] if needs_search and not has_search else tools


def _deferred(tool: Any) -> Any:
    # A subclass may redefine its fields; a tool in a namespace is found with its namespace.
    if type(tool) is not FunctionTool or getattr(tool, "_tool_namespace", None) is not None:
        return tool
    copied = copy.copy(tool)
    copied.defer_loading = True
    return copied
