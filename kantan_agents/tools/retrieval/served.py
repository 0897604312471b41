"""One tool index for each listing of MCP servers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from agents import FunctionTool

from kantan_agents.support.log import get_logger
from kantan_agents.tool_rules.names import NamePatterns
from kantan_agents.tools.facts import facts_of_listed
from kantan_agents.tools.retrieval.index import AgentToolIndex
from kantan_agents.tools.server_names import server_of

_MOST_LISTINGS = 16
"""A filter of a server's tools may return different ones for each user."""

_log = get_logger("kantan_agents.retrieval")

_Listing = list[tuple[Any, ...]]


class ServedToolIndexes:
    """The SDK recreates MCP tools in each turn; only changed ones need a new index."""

    def __init__(self, base: AgentToolIndex) -> None:
        self._base = base
        self._known: list[tuple[_Listing, AgentToolIndex]] = []
        self._unmatched: set[str] = set()
        self._lock = threading.Lock()

    def with_tools(self, served: Sequence[FunctionTool]) -> AgentToolIndex:
        """Return the index of the agent's own tools and these, for one turn."""
        if not served:
            return self._base
        tools = [*self._base.tools, *served]
        return self._of_listing(served, tools).in_this_turn(tools, served)

    def _of_listing(self, served: Sequence[FunctionTool], tools: Sequence[FunctionTool]) -> AgentToolIndex:
        listing: _Listing = [
            (tool.name, server_of(tool), tool.description, tool.params_json_schema) for tool in served
        ]
        with self._lock:
            for place, (known, index) in enumerate(self._known):
                if known == listing:
                    self._known.append(self._known.pop(place))
                    return index
            index = AgentToolIndex(
                self._base.options, tools, self._base.owner, self._always(served), self._base
            )
            self._known = [*self._known[1 - _MOST_LISTINGS :], (listing, index)]
            return index

    def _always(self, served: Sequence[FunctionTool]) -> list[str]:
        """Return the tools that are always shown; log entries without a tool once."""
        own = [name for name in self._base.options.always if self._base.tool_named(name) is not None]
        found: dict[str, None] = dict.fromkeys(own)
        for entry in self._base.options.always:
            if entry in own:
                continue
            pattern = NamePatterns([entry])
            matching = [
                tool.name for tool in served if any(map(pattern.covering, facts_of_listed(tool).names))
            ]
            found.update(dict.fromkeys(matching))
            if not matching and entry not in self._unmatched:
                self._unmatched.add(entry)
                _log.warning("always_names_no_tool", name=entry, option="tool_retrieval")
        return list(found)
