"""Previews the first turn's tools."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kantan_agents.errors import RetrievalError
from kantan_agents.tool_rules import RuleLayers
from kantan_agents.tools.retrieval.index import AgentToolIndex
from kantan_agents.tools.retrieval.query import newest_text
from kantan_agents.tools.retrieval.retrievers.retriever import ToolMatch
from kantan_agents.tools.retrieval.search import first_matching


@attrs.frozen
class ToolSelection:
    """The tools an agent shows its model for an input.

    Attributes:
        shown: Names of the function tools that are shown, in order.
        matches: The matches of the search, best first.
        failed: The error if retrieval failed and all tools are shown, else None.
    """

    shown: Sequence[str]
    matches: Sequence[ToolMatch] = ()
    failed: str | None = None


async def select_tools(tool_index: AgentToolIndex, text: object, layers: RuleLayers) -> ToolSelection:
    """Return the tools for ``text``."""
    usable = await first_matching(
        lambda tool: tool_index.may_use(tool, layers), tool_index.tools, len(tool_index.tools)
    )
    everything = [tool.qualified_name for tool in usable]
    if not tool_index.is_needed:
        return ToolSelection(everything)
    permitted = set(everything)
    few = [name for name in everything if tool_index.is_chosen_from(name)]
    if not layers.permits_all and len(few) <= tool_index.options.top_n:
        return ToolSelection([name for name in tool_index.in_view_with(few) if name in permitted])
    query = newest_text(text)
    try:
        matches = await tool_index.best(query, layers, tool_index.options.top_n) if query.strip() else []
    except RetrievalError as error:
        return ToolSelection(everything, failed=str(error))
    found = tool_index.in_view_with(match.name for match in matches)
    shown = [name for name in found if name in permitted]
    return ToolSelection(shown, matches)
