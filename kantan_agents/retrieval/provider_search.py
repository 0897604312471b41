"""The search left to OpenAI: tools that its Responses API loads when its own search finds them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from agents import FunctionTool, ToolSearchTool

from kantan_agents.retrieval.names import known_names
from kantan_agents.retrieval.options import ToolRetrieval


def to_be_loaded_later(tools: Sequence[Any], options: ToolRetrieval) -> list[Any]:
    """Return the tools, plain ones but ``always`` as copies to be loaded later, and OpenAI's search.

    Raises:
        UnknownRetrievedToolError: E58, ``always`` names a tool that is not there.
    """
    always = known_names(options.always, [tool.name for tool in tools])
    later = [_later(tool) if tool.name not in always else tool for tool in tools]
    needs_search = any(getattr(tool, "defer_loading", False) for tool in later)
    has_search = any(isinstance(tool, ToolSearchTool) for tool in later)
    return later if has_search or not needs_search else [*later, ToolSearchTool()]


def _later(tool: Any) -> Any:
    # A subclass may mean something else by its fields; one of a namespace is searched with its namespace.
    if type(tool) is not FunctionTool or getattr(tool, "_tool_namespace", None) is not None:
        return tool
    copied = copy.copy(tool)
    copied.defer_loading = True
    return copied
