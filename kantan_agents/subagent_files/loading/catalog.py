"""The catalog of loaded agents, each name once, with the problems, shadowed agents and repairs."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, overload

import attrs

from kantan_agents.errors import AgentNotFoundError
from kantan_agents.subagent_files.definition import AgentDefinition
from kantan_agents.subagent_files.loading.directories import DirectoryScope
from kantan_agents.subagent_files.loading.search import SearchIndex
from kantan_agents.subagent_files.names import name_key
from kantan_agents.subagent_files.problems import Problem
from kantan_agents.subagent_files.remarks import remarks_of
from kantan_agents.support.arguments import checked_text

AgentScope = DirectoryScope | Literal["builtin"]


@attrs.frozen
class ShadowedAgent:
    """A definition that is not used because another one with the same name has priority.

    Attributes:
        name: The name, as this definition spells it.
        path: Its file; None for a built-in definition.
        by: The file of the definition that is used; None for a built-in definition.
    """

    name: str
    path: Path | None
    by: Path | None


@attrs.frozen
class CatalogEntry:
    """A definition that is used, and its scope."""

    definition: AgentDefinition
    scope: AgentScope


@attrs.frozen(eq=False, repr=False, slots=False)
class AgentCatalog(Sequence[AgentDefinition]):
    """An immutable snapshot of the loaded agents, sorted by name.

    Names match regardless of case and separators: ``Code Reviewer`` is ``code-reviewer``.

    Attributes:
        problems: Errors and warnings of all files, by path and line.
        shadowed: Definitions that are not used because another one with the same name has priority.
        repaired: Definitions from files that are not valid YAML, shadowed ones included.
    """

    _entries: Mapping[str, CatalogEntry]
    problems: tuple[Problem, ...] = ()
    shadowed: tuple[ShadowedAgent, ...] = ()
    repaired: tuple[AgentDefinition, ...] = ()

    def get(self, name: str) -> AgentDefinition:
        """Return the agent with this name.

        Raises:
            AgentNotFoundError: E32: there is no such agent; the error lists all agents, similar names first.
        """
        return self._entry(name).definition

    def search(self, text: str) -> tuple[AgentDefinition, ...]:
        """Return the agents with every word of ``text`` in name or description, the best match first.

        A text without words matches all agents.
        """
        return self._index.search(checked_text("text", text))

    def details(self, name: str) -> dict[str, Any]:
        """Return all information about an agent as JSON data.

        Raises:
            AgentNotFoundError: E32: there is no agent with this name.

        Returns:
            The fields of the definition (``tools`` is a list or ``"*"``), and ``path`` (None for a built-in
            agent), ``scope``, and as lists of strings ``repairs`` and ``remarks``: limits of other programs
            that have no effect here, entries of ``tools`` that grant nothing, and the like.
        """
        entry = self._entry(name)
        definition = entry.definition
        return {
            **definition.to_dict(),
            "tools": "*" if definition.tools == "*" else list(definition.tools),
            "path": None if definition.path is None else str(definition.path),
            "scope": entry.scope,
            "repairs": [str(repair) for repair in definition.repairs],
            "remarks": [remark.message for remark in remarks_of(definition)],
        }

    def scope_of(self, definition: AgentDefinition) -> AgentScope:
        """Return the scope of an agent: where its definition was found.

        Raises:
            AgentNotFoundError: E32: there is no agent with this name.
        """
        return self._entry(definition.name).scope

    def names(self) -> tuple[str, ...]:
        """Return the names, sorted."""
        return tuple(definition.name for definition in self._definitions)

    @overload
    def __getitem__(self, index: int) -> AgentDefinition: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[AgentDefinition, ...]: ...
    def __getitem__(self, index: int | slice) -> AgentDefinition | tuple[AgentDefinition, ...]:
        return self._definitions[index]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[AgentDefinition]:
        return iter(self._definitions)

    def __contains__(self, value: object) -> bool:
        if isinstance(value, str):
            return name_key(value) in self._entries
        if isinstance(value, AgentDefinition):
            entry = self._entries.get(name_key(value.name))
            return entry is not None and entry.definition == value
        return False

    def __repr__(self) -> str:
        errors = sum(problem.severity == "error" for problem in self.problems)
        counts = [f"{len(self)} agents", f"{errors} errors", f"{len(self.shadowed)} shadowed"]
        return f"AgentCatalog({', '.join(counts)})"

    def _entry(self, name: str) -> CatalogEntry:
        key = name_key(checked_text("name", name))
        entry = self._entries.get(key)
        if entry is None:
            raise AgentNotFoundError(name=name, available=self._names_similar_first(key))
        return entry

    def _names_similar_first(self, key: str) -> tuple[str, ...]:
        close = difflib.get_close_matches(key, self._entries, n=5)
        similar = [self._entries[found].definition.name for found in close]
        return tuple(dict.fromkeys([*similar, *self.names()]))

    @cached_property
    def _definitions(self) -> tuple[AgentDefinition, ...]:
        definitions = (entry.definition for entry in self._entries.values())
        return tuple(
            sorted(definitions, key=lambda definition: (definition.name.casefold(), definition.name))
        )

    @cached_property
    def _index(self) -> SearchIndex:
        return SearchIndex.of(self._definitions)


@attrs.frozen(eq=False)
class Candidate:
    """A file that was read: its definition or its problems, and its scope."""

    definition: AgentDefinition | None
    errors: tuple[Problem, ...]
    scope: AgentScope


def build_catalog(candidates: Iterable[Candidate], problems: Iterable[Problem] = ()) -> AgentCatalog:
    """Build a catalog; the first candidate with a name is used, the others are shadowed.

    Args:
        candidates: The candidates, in order of priority.
        problems: Problems that do not belong to a candidate.
    """
    entries: dict[str, CatalogEntry] = {}
    shadowed, repaired, all_problems = [], [], list(problems)
    for candidate in candidates:
        all_problems += candidate.errors
        definition = candidate.definition
        if definition is None:
            continue
        all_problems += warnings_of(definition)
        if definition.notes and definition.repairs:
            repaired.append(definition)
        entry = entries.setdefault(name_key(definition.name), CatalogEntry(definition, candidate.scope))
        if entry.definition is not definition:
            shadowed.append(ShadowedAgent(definition.name, definition.path, entry.definition.path))
    all_problems.sort(key=lambda problem: (str(problem.path or ""), problem.line))
    return AgentCatalog(entries, tuple(all_problems), tuple(shadowed), tuple(repaired))


def warnings_of(definition: AgentDefinition) -> tuple[Problem, ...]:
    """Return the notes on a definition, and a warning if its file has no prompt."""
    if definition.path is None or definition.system_prompt.strip():
        return definition.notes
    no_prompt = Problem(definition.path, 1, "has no prompt: it cannot be run", "warning")
    return (no_prompt, *definition.notes)
