"""The catalog of loaded skills or commands, each name once, with the problems and the shadowed files."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, overload

import attrs

from kantan_agents.errors import KantanAgentsError, SkillNotFoundError, UnknownCommandError
from kantan_agents.subagent_files.loading.cache import FileResult
from kantan_agents.subagent_files.names import name_key
from kantan_agents.subagent_files.problems import Problem
from kantan_agents.support.arguments import checked_text
from kantan_agents.tools.skills.command_file import CommandFile
from kantan_agents.tools.skills.skill import Skill


class NamedFile(Protocol):
    """What a catalog holds."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def path(self) -> Path | None:
        """Its file."""
        ...

    @property
    def notes(self) -> tuple[Problem, ...]:
        """The warnings from reading it."""
        ...


T = TypeVar("T", bound=NamedFile)


@attrs.frozen
class Shadowed:
    """A file that is not used because another one with the same name has priority.

    Attributes:
        name: The name.
        path: The file; None for one made in Python.
        by: The file that is used; None for one made in Python.
    """

    name: str
    path: Path | None
    by: Path | None


@attrs.frozen(eq=False, repr=False)
class FileCatalog(Sequence[T], Generic[T]):
    """An immutable snapshot of what was loaded, sorted by name. Names match in any case.

    Attributes:
        problems: Errors and warnings of all files, by path and line.
        shadowed: Files that are not used because another one with the same name has priority.
    """

    _entries: Mapping[str, T]
    problems: tuple[Problem, ...] = ()
    shadowed: tuple[Shadowed, ...] = ()

    def get(self, name: str) -> T:
        """Return the entry with this name.

        Raises:
            KantanAgentsError: There is none: E189 for a skill, E54 for a command.
        """
        found = self.find(name)
        if found is None:
            raise self._missing(name)
        return found

    def find(self, name: str) -> T | None:
        """Return the entry with this name; None if there is none."""
        return self._entries.get(name_key(checked_text("name", name)))

    def names(self) -> tuple[str, ...]:
        """Return the names, sorted."""
        return tuple(entry.name for entry in self._entries.values())

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        return tuple(self._entries.values())[index]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[T]:
        return iter(self._entries.values())

    def __contains__(self, value: object) -> bool:
        if isinstance(value, str):
            return name_key(value) in self._entries
        return any(entry == value for entry in self._entries.values())

    def __repr__(self) -> str:
        errors = sum(problem.severity == "error" for problem in self.problems)
        counts = f"{len(self)} loaded, {errors} errors, {len(self.shadowed)} shadowed"
        return f"{type(self).__name__}({counts})"

    @abstractmethod
    def _missing(self, name: str) -> KantanAgentsError:
        """Return the error for a name that no entry has."""


class SkillCatalog(FileCatalog[Skill]):
    """An immutable snapshot of the loaded skills, sorted by name.

    Attributes:
        problems: Errors and warnings of all files, by path and line.
        shadowed: Skills that are not used because another one with the same name has priority.
    """

    def _missing(self, name: str) -> KantanAgentsError:
        return SkillNotFoundError(name=name, available=self.names())


class CommandCatalog(FileCatalog[CommandFile]):
    """An immutable snapshot of the loaded commands, sorted by name.

    Attributes:
        problems: Errors and warnings of all files, by path and line.
        shadowed: Commands that are not used because another one with the same name has priority.
    """

    def _missing(self, name: str) -> KantanAgentsError:
        return UnknownCommandError(name=name, nearest=(), prefix="/")


CatalogT = TypeVar("CatalogT", SkillCatalog, CommandCatalog)


def build_catalog(
    make: Callable[..., CatalogT], results: Iterable[FileResult[Any]], problems: Iterable[Problem]
) -> CatalogT:
    """Build a catalog; the first entry with a name is used, the others are shadowed.

    Args:
        make: The class of the catalog.
        results: What was read, in order of priority.
        problems: Problems that do not belong to a file.
    """
    entries: dict[str, Any] = {}
    shadowed: list[Shadowed] = []
    found = list(problems)
    for result in results:
        found += result.errors
        entry = result.definition
        if entry is None:
            continue
        found += entry.notes
        used = entries.setdefault(name_key(entry.name), entry)
        if used is not entry:
            shadowed.append(Shadowed(entry.name, entry.path, used.path))
    found.sort(key=lambda problem: (str(problem.path or ""), problem.line))
    in_order = dict(sorted(entries.items(), key=lambda pair: (pair[1].name, pair[0])))
    return make(in_order, tuple(found), tuple(shadowed))
