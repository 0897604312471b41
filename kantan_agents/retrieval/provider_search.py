"""Leaves the tool search to OpenAI: the Responses API loads deferred tools when its own search finds them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from agents import FunctionTool, ToolSearchTool

from kantan_agents.retrieval.options import ToolRetrieval, known_names


def defer_loading_of(tools: Sequence[Any], options: ToolRetrieval) -> list[Any]:
    """Return the tools with deferred loading for all plain ones except ``always``, and OpenAI's search tool.

    Raises:
        UnknownRetrievedToolError: E58, ``always`` names an unknown tool.
    """
    always = known_names(options.always, [tool.name for tool in tools])
    deferred = [_deferred(tool) if tool.name not in always else tool for tool in tools]
    needs_search = any(getattr(tool, "defer_loading", False) for tool in deferred)
    has_search = any(isinstance(tool, ToolSearchTool) for tool in deferred)
    return deferred if has_search or not needs_search else [*deferred, ToolSearchTool()]


def _deferred(tool: Any) -> Any:
    # A subclass may give its fields another meaning; a tool in a namespace is found with its namespace.
    if type(tool) is not FunctionTool or getattr(tool, "_tool_namespace", None) is not None:
        return tool
    copied = copy.copy(tool)
    copied.defer_loading = True
    return copied
