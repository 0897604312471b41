"""What the first turn of a run would show, for people who want to know."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kantan_agents.errors import RetrievalError
from kantan_agents.retrieval.in_turns import first_that
from kantan_agents.retrieval.index import ToolShelf
from kantan_agents.retrieval.query import newest_text
from kantan_agents.retrieval.retrievers.retriever import ToolMatch
from kantan_agents.tool_rules import RuleLayers


@attrs.frozen
class ToolSelection:
    """What an agent shows its model for an input.

    Attributes:
        shown: Names of the function tools that are shown, in their order.
        matches: What was found, the best first.
        failed: Why all tools are shown, if retrieval failed; else None.
    """

    shown: Sequence[str]
    matches: Sequence[ToolMatch] = ()
    failed: str | None = None


async def selected(shelf: ToolShelf, text: object, layers: RuleLayers) -> ToolSelection:
    """Return what an agent with this shelf shows for a text, under these rules."""
    usable = await first_that(lambda tool: shelf.may_use(tool, layers), shelf.tools, len(shelf.tools))
    everything = [tool.qualified_name for tool in usable]
    if not shelf.is_needed:
        return ToolSelection(everything)
    permitted = set(everything)
    few = [name for name in everything if shelf.is_chosen_from(name)]
    if not layers.permits_all and len(few) <= shelf.options.top_n:
        return ToolSelection([name for name in shelf.in_view_with(few) if name in permitted])
    query = newest_text(text)
    try:
        matches = await shelf.best(query, layers, shelf.options.top_n) if query.strip() else []
    except RetrievalError as error:
        return ToolSelection(everything, failed=str(error))
    found = shelf.in_view_with(match.name for match in matches)
    shown = [name for name in found if name in permitted]
    return ToolSelection(shown, matches)
