"""The agents there are: each name once, with what was wrong, hidden or repaired on the way."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, overload

import attrs

from kantan_agents.definitions.definition import AgentDefinition
from kantan_agents.definitions.loading.directories import DirectoryScope
from kantan_agents.definitions.loading.file_problems import warnings_of
from kantan_agents.definitions.loading.search import SearchIndex
from kantan_agents.definitions.names import name_key
from kantan_agents.definitions.problems import Problem
from kantan_agents.errors import AgentNotFoundError
from kantan_agents.support.arguments import checked_text

AgentScope = DirectoryScope | Literal["builtin"]


@attrs.frozen
class ShadowedAgent:
    """A definition that is not used because another of the same name comes before it.

    Attributes:
        name: The name as this definition writes it.
        path: Its file; None for a built-in definition.
        by: The file of the one that is used; None for a built-in definition.
    """

    name: str
    path: Path | None
    by: Path | None


@attrs.frozen
class CatalogEntry:
    """A definition that counts, and where it comes from."""

    definition: AgentDefinition
    scope: AgentScope


@attrs.frozen(eq=False, repr=False, slots=False)
class AgentCatalog(Sequence[AgentDefinition]):
    """The agents as they were when they were loaded, sorted by name; it does not change.

    Names match whatever their case and whatever separates their words: ``Code Reviewer`` is
    ``code-reviewer``.

    Attributes:
        problems: Errors and warnings of all files, by path and line.
        shadowed: The definitions that are not used because another of their name comes first.
        repaired: What was read from files that are not valid YAML, also where it is shadowed.
    """

    _entries: Mapping[str, CatalogEntry]
    problems: tuple[Problem, ...] = ()
    shadowed: tuple[ShadowedAgent, ...] = ()
    repaired: tuple[AgentDefinition, ...] = ()

    def get(self, name: str) -> AgentDefinition:
        """Return the agent of a name.

        Raises:
            AgentNotFoundError: E32: there is none; the error lists those there are, names like it first.
        """
        return self._entry(name).definition

    def search(self, text: str) -> tuple[AgentDefinition, ...]:
        """Return the agents that hold every word of ``text`` in name or description, the best first.

        A text without words finds them all.
        """
        return self._index.search(checked_text("text", text))

    def details(self, name: str) -> dict[str, Any]:
        """Return everything known of an agent, as data for JSON.

        Raises:
            AgentNotFoundError: E32: there is none of this name.

        Returns:
            The fields of the definition (``tools`` is the list of tools it may use, or ``"*"``); and
            ``path`` (None for a built-in one), ``scope`` and ``repairs``, a list of texts.
        """
        entry = self._entry(name)
        definition = entry.definition
        return {
            **definition.to_dict(),
            "tools": "*" if definition.tools == "*" else list(definition.tools),
            "path": None if definition.path is None else str(definition.path),
            "scope": entry.scope,
            "repairs": [str(repair) for repair in definition.repairs],
        }

    def scope_of(self, definition: AgentDefinition) -> AgentScope:
        """Return where an agent of this catalog comes from.

        Raises:
            AgentNotFoundError: E32: there is none of its name.
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
            raise AgentNotFoundError(name=name, available=self._like(key))
        return entry

    def _like(self, key: str) -> tuple[str, ...]:
        close = difflib.get_close_matches(key, self._entries, n=5)
        first = [self._entries[found].definition.name for found in close]
        return tuple(dict.fromkeys([*first, *self.names()]))

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
    """A file that was read: its definition or its errors, and the scope it belongs to."""

    definition: AgentDefinition | None
    errors: tuple[Problem, ...]
    scope: AgentScope


def assembled(candidates: Iterable[Candidate], problems: Iterable[Problem] = ()) -> AgentCatalog:
    """Make the catalog of what was found; of a name, what comes first counts.

    Args:
        candidates: What was found, in the order that decides.
        problems: What was wrong before any file was read.
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
