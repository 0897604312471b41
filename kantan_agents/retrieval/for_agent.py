"""From the tools of an agent to the shelf they are chosen from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents import FunctionTool

from kantan_agents.errors import InvalidOptionError
from kantan_agents.retrieval.find_tools import find_tools_tool
from kantan_agents.retrieval.index import ToolShelf
from kantan_agents.retrieval.options import ToolRetrieval


def shelf_for(
    options: ToolRetrieval, held: Sequence[FunctionTool], others: Sequence[Any], owner: Any
) -> ToolShelf:
    """Return the shelf of an agent.

    Args:
        options: How it chooses.
        held: The guarded tools to choose from.
        others: The other tools of the agent, which are always shown.
        owner: The agent.

    Raises:
        UnknownRetrievedToolError: E58, ``always`` names a tool that is not there.
        InvalidOptionError: E75, a tool of the agent has the name of the tool that asks for more.
    """
    shelf = ToolShelf(options, held, owner)
    name = options.find_tools
    if shelf.is_needed and name is not None:
        if any(getattr(tool, "name", None) == name for tool in (*held, *others)):
            reason = f"the agent has a tool named {name} of its own; give another name, or None"
            raise InvalidOptionError(option="find_tools", reason=reason)
        shelf.finder = find_tools_tool(name, shelf)
    return shelf
