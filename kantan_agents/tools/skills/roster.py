"""The skills that an agent may use now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import anyio.lowlevel
import attrs
from agents import RunState
from agents.tool_context import ToolContext
from cachetools import LRUCache

from kantan_agents.core.items import parsed
from kantan_agents.core.pipeline import current_run
from kantan_agents.errors import RetrievalError
from kantan_agents.subagent_files.names import name_key
from kantan_agents.support.log import get_logger
from kantan_agents.support.nearest import nearest
from kantan_agents.tool_rules import RuleLayers, ToolFacts
from kantan_agents.tools.guards.check import check_layers
from kantan_agents.tools.retrieval import ToolDocument, ToolRetrieval
from kantan_agents.tools.retrieval.query import cut, newest_text
from kantan_agents.tools.retrieval.search import ToolSearch
from kantan_agents.tools.skills.interface import (
    MAX_DESCRIPTIONS,
    NAME,
    all_skills_description,
    skills_text,
    some_skills_description,
)
from kantan_agents.tools.skills.loader import SkillLoader
from kantan_agents.tools.skills.skill import Skill

_CACHE_SIZE = 64
_CHECKS_PER_STEP = 20
_log = get_logger("kantan_agents.skills")


@attrs.frozen(eq=False)
class Available:
    """Usable skills; ``are_listed`` if the model sees all."""

    skills: tuple[Skill, ...]
    search: ToolSearch
    are_listed: bool

    def named(self, name: str) -> Skill | None:
        """Return the skill of this name, in any case."""
        key = name_key(name)
        return next((skill for skill in self.skills if name_key(skill.name) == key), None)

    async def best(self, query: str, count: int) -> list[Skill]:
        """Return the first skills if the search fails."""
        try:
            matches = await self.search.search(cut(query), count) if query.strip() else []
        except RetrievalError:  # logged by the search
            return list(self.skills[:count])
        by_name = {skill.name: skill for skill in self.skills}
        return [by_name[match.name] for match in matches[:count]]


class SkillRoster:
    """With more than ``most_listed`` skills, the model sees only those that match the input."""

    def __init__(
        self,
        loader: SkillLoader,
        only: tuple[str, ...] | None,
        retrieval: ToolRetrieval,
        most_listed: int,
    ) -> None:
        self.loader = loader
        self.retrieval = retrieval
        self._only = only
        self._most_listed = most_listed
        self._missing: frozenset[str] = frozenset()
        self._cache: LRUCache[Any, tuple[Any, Available]] = LRUCache(maxsize=_CACHE_SIZE)
        # By the SDK's context of a run; nested runs have their own.
        self._descriptions: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
        self._lock = Lock()

    async def available(self, facts: ToolFacts, layers: RuleLayers) -> Available:
        """``facts`` describe the tool ``Skill``."""
        catalog = await self.loader.load_skills()
        # Called every turn, and slow with a thousand skills and rules about them.
        key = (id(catalog), tuple(map(id, layers.rule_sets)))
        with self._lock:
            cached = self._cache.get(key)
        if cached is not None:
            return cached[1]
        named = self._named(catalog)
        found = []
        for count, skill in enumerate(named, start=1):
            if layers.permits_all or (await check_layers(layers, facts, {NAME: skill.name})).allowed:
                found.append(skill)
            if count % _CHECKS_PER_STEP == 0:
                await anyio.lowlevel.checkpoint()
        made = self._made(tuple(found))
        with self._lock:
            # Hold the objects whose ids are in the key, so that no other object gets those ids.
            self._cache[key] = ((catalog, layers.rule_sets), made)
        return made

    def _named(self, catalog: Iterable[Skill]) -> list[Skill]:
        skills = list(catalog)
        if self._only is None:
            return skills
        wanted = {name_key(name): name for name in self._only}
        known = {name_key(skill.name): skill for skill in skills}
        missing = frozenset(name for key, name in wanted.items() if key not in known)
        if missing - self._missing:
            names = [skill.name for skill in skills]
            listed = [f"{name!r} (the nearest name is {nearest(name, names)!r})" for name in sorted(missing)]
            _log.warning("skills of an agent do not exist", skills=listed, loader=repr(self.loader))
        self._missing = missing
        return [skill for key, skill in known.items() if key in wanted]

    def _made(self, skills: tuple[Skill, ...]) -> Available:
        documents = [ToolDocument(skill.name, skill.description) for skill in skills]
        search = ToolSearch(self.retrieval, lambda: documents, frozenset(skill.name for skill in skills))
        is_short = len(skills) <= self._most_listed and len(skills_text(skills)) <= MAX_DESCRIPTIONS
        return Available(skills, search, is_short)

    async def description(self, available: Available, agent: Any, wrapper: Any) -> str:
        """Describe ``Skill`` for a turn.

        A list of all skills is the same in every run, and matches are fixed for a run, so that the provider's
        cache stays valid.
        """
        if available.are_listed:
            return all_skills_description(available.skills)
        known = self._descriptions.get(wrapper)
        if known is None:
            found = await available.best(_query(agent, wrapper), self.retrieval.top_n)
            found.sort(key=lambda skill: skill.name)  # equal choices give equal bytes
            known = some_skills_description(found, len(available.skills))
            self._descriptions[wrapper] = known
        return known


def _query(agent: Any, wrapper: Any) -> str:
    if isinstance(wrapper, ToolContext):  # an agent as a tool: the arguments of its call
        return newest_text(wrapper.tool_input or parsed(wrapper.tool_arguments))
    run = current_run.get()
    given = run.input if run is not None else None
    if isinstance(given, RunState):
        given = given._original_input
    is_own = run is not None and getattr(agent, "owner", None) is run.agent
    return newest_text(given if is_own and given is not None else wrapper.turn_input or given or "")


def names_of(skills: Sequence[Skill]) -> tuple[str, ...]:
    """Return the names of skills."""
    return tuple(skill.name for skill in skills)
