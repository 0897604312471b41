"""The agents that may work for a delegating agent."""

from __future__ import annotations

from threading import Lock
from typing import Any

import anyio.lowlevel
from cachetools import LRUCache

from kantan_agents.agent.delegation.chain import link_of
from kantan_agents.agent.delegation.parent import Parent
from kantan_agents.agent.delegation.tool_interface import SUBAGENT_TYPE
from kantan_agents.subagent_files import AgentDefinition, AgentLoader, name_key
from kantan_agents.tool_rules import RuleLayers, ToolFacts
from kantan_agents.tools.guards.check import check_layers

_CACHE_SIZE = 64
_CHECKS_PER_STEP = 20


class Roster:
    """Lists the agents available to a delegating agent."""

    def __init__(self, loader: AgentLoader) -> None:
        self.loader = loader
        self._cache: LRUCache[Any, tuple[Any, list[AgentDefinition]]] = LRUCache(maxsize=_CACHE_SIZE)
        self._lock = Lock()

    async def available(self, parent: Parent, facts: ToolFacts, layers: RuleLayers) -> list[AgentDefinition]:
        """Return the agents that ``parent`` may use: permitted, and not in the chain."""
        names = link_of(parent.run, parent.name).names_with(parent.name)
        in_chain = frozenset(map(name_key, names))
        definitions = tuple(await self.loader.load_agents())
        # Called every turn, and slow with a thousand agents and rules about them.
        key = (in_chain, tuple(map(id, definitions)), tuple(map(id, layers.rule_sets)))
        with self._lock:
            cached = self._cache.get(key)
        if cached is not None:
            return cached[1]
        found = []
        for count, definition in enumerate(definitions, start=1):
            if name_key(definition.name) not in in_chain and await self.is_permitted(
                definition, facts, layers
            ):
                found.append(definition)
            if count % _CHECKS_PER_STEP == 0:
                await anyio.lowlevel.checkpoint()
        with self._lock:
            # Keep the objects of these ids alive, so that no other object gets them.
            self._cache[key] = ((definitions, layers.rule_sets), found)
        return found

    async def is_permitted(self, definition: AgentDefinition, facts: ToolFacts, layers: RuleLayers) -> bool:
        """Return whether the rules permit this agent."""
        if layers.permits_all:
            return True
        return (await check_layers(layers, facts, {SUBAGENT_TYPE: definition.name})).allowed
