"""Which agents somebody may delegate to at this moment."""

from __future__ import annotations

from threading import Lock
from typing import Any

import anyio.lowlevel
from cachetools import LRUCache

from kantan_agents.definitions import AgentDefinition, AgentLoader, name_key
from kantan_agents.delegation.chain import link_of
from kantan_agents.delegation.parent import Parent
from kantan_agents.tool_rules import RuleLayers, ToolFacts
from kantan_agents.tools.guards.check import check_layers

_KEPT = 64
_AT_ONCE = 20


class Roster:
    """Says who is available to an agent that delegates.

    Args:
        loader: Where the agents are.
        parameter: The tool's parameter that names one.
    """

    def __init__(self, loader: AgentLoader, parameter: str) -> None:
        self.loader = loader
        self._parameter = parameter
        self._known: LRUCache[Any, tuple[Any, list[AgentDefinition]]] = LRUCache(maxsize=_KEPT)
        self._lock = Lock()

    async def available(self, parent: Parent, facts: ToolFacts, layers: RuleLayers) -> list[AgentDefinition]:
        """Return the agents that ``parent`` may delegate to: permitted, and not at work already.

        Args:
            parent: Who delegates.
            facts: The tool it delegates by.
            layers: The rules in force.
        """
        names = link_of(parent.run, parent.name).names_with(parent.name)
        waiting = frozenset(map(name_key, names))
        definitions = tuple(await self.loader.load_agents())
        # Asked each turn: with a thousand agents and rules about them the answer takes a while.
        key = (waiting, tuple(map(id, definitions)), tuple(map(id, layers.rule_sets)))
        with self._lock:
            known = self._known.get(key)
        if known is not None:
            return known[1]
        found = []
        for place, definition in enumerate(definitions, start=1):
            if name_key(definition.name) not in waiting and await self.is_permitted(
                definition, facts, layers
            ):
                found.append(definition)
            if place % _AT_ONCE == 0:
                await anyio.lowlevel.checkpoint()
        with self._lock:
            # With what the ids in the key are of, so that they stay theirs.
            self._known[key] = ((definitions, layers.rule_sets), found)
        return found

    async def is_permitted(self, definition: AgentDefinition, facts: ToolFacts, layers: RuleLayers) -> bool:
        """Return whether the rules let a definition be delegated to."""
        if layers.permits_all:
            return True
        return (await check_layers(layers, facts, {self._parameter: definition.name})).allowed
