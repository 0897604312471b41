"""The catalog of loaded values, each name once."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar, overload

import attrs

from kantan_agents.errors import KantanAgentsError
from kantan_agents.subagent_files.loading.cache import FileResult
from kantan_agents.subagent_files.loading.directories import DirectoryScope
from kantan_agents.subagent_files.names import name_key
from kantan_agents.subagent_files.problems import Problem
from kantan_agents.support.arguments import checked_text

Scope = DirectoryScope | Literal["builtin"]


class NamedFile(Protocol):
    """An entry of a catalog."""

    @property
    def name(self) -> str:
        """The name."""
        ...

    @property
    def path(self) -> Path | None:
        """The file."""
        ...

    @property
    def notes(self) -> tuple[Problem, ...]:
        """The warnings from reading it."""
        ...


T = TypeVar("T", bound=NamedFile)


@attrs.frozen
class Shadowed:
    """A file that another one with the same name and a higher priority replaces.

    Attributes:
        name: The name, as this file spells it.
        path: The file; None if it was made in Python.
        by: The file that is used; None if it was made in Python.
    """

    name: str
    path: Path | None
    by: Path | None


@attrs.frozen
class CatalogEntry(Generic[T]):
    """A value that is used, and its scope."""

    value: T
    scope: Scope


@attrs.frozen(eq=False, repr=False, slots=False)
class FileCatalog(Sequence[T], Generic[T]):
    """An immutable snapshot of the loaded values, sorted by name.

    Names match regardless of case and separators.

    Attributes:
        problems: Errors and warnings of all files, by path and line.
        shadowed: Files that another one with the same name and a higher priority replaces.
    """

    _counted: ClassVar[str] = "loaded"

    _entries: Mapping[str, CatalogEntry[T]]
    problems: tuple[Problem, ...] = ()
    shadowed: tuple[Shadowed, ...] = ()

    def get(self, name: str) -> T:
        """Return the entry with this name.

        Raises:
            KantanAgentsError: No entry has it: E32 for an agent, E189 for a skill, E54 for a command.
        """
        return self._entry(name).value

    def find(self, name: str) -> T | None:
        """Return the entry with this name, or None."""
        entry = self._entries.get(name_key(checked_text("name", name)))
        return None if entry is None else entry.value

    def names(self) -> tuple[str, ...]:
        """Return the names, sorted."""
        return tuple(value.name for value in self)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return self._values[index]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[T]:
        return iter(self._values)

    def __contains__(self, value: object) -> bool:
        if isinstance(value, str):
            return name_key(value) in self._entries
        return value in self._values

    def __repr__(self) -> str:
        errors = sum(problem.severity == "error" for problem in self.problems)
        counts = f"{len(self)} {self._counted}, {errors} errors, {len(self.shadowed)} shadowed"
        return f"{type(self).__name__}({counts})"

    def _entry(self, name: str) -> CatalogEntry[T]:
        entry = self._entries.get(name_key(checked_text("name", name)))
        if entry is None:
            raise self._missing(name)
        return entry

    @abstractmethod
    def _missing(self, name: str) -> KantanAgentsError:
        """Return the error for a name that no entry has."""

    @cached_property
    def _values(self) -> tuple[T, ...]:
        return tuple(entry.value for entry in self._entries.values())

    @staticmethod
    def _warnings_of(value: T) -> tuple[Problem, ...]:
        return value.notes

    @staticmethod
    def _order_of(name: str) -> Any:
        return name


CatalogT = TypeVar("CatalogT", bound=FileCatalog[Any])


def build_catalog(
    make: type[CatalogT], results: Iterable[tuple[FileResult[Any], Scope]], problems: Iterable[Problem]
) -> CatalogT:
    """Build a catalog; the first value with a name shadows the others."""
    entries: dict[str, CatalogEntry[Any]] = {}
    shadowed: list[Shadowed] = []
    found = list(problems)
    for result, scope in results:
        found += result.errors
        value = result.value
        if value is None:
            continue
        found += make._warnings_of(value)
        used = entries.setdefault(name_key(value.name), CatalogEntry(value, scope)).value
        if used is not value:
            shadowed.append(Shadowed(value.name, value.path, used.path))
    found.sort(key=lambda problem: (str(problem.path or ""), problem.line))
    in_order = dict(sorted(entries.items(), key=lambda pair: make._order_of(pair[1].value.name)))
    return make(in_order, tuple(found), tuple(shadowed))
