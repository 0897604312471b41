"""The agents of a project and its user."""

from __future__ import annotations

import difflib
import os
import unicodedata
from collections.abc import Callable, Iterable
from functools import cached_property, partial
from typing import Any, ClassVar

import attrs
from anyio import to_thread

from kantan_agents.errors import (
    AgentFileError,
    AgentNotFoundError,
    InvalidDefinitionError,
    KantanAgentsError,
)
from kantan_agents.subagent_files.definition import AgentDefinition
from kantan_agents.subagent_files.frontmatter.document import lacks_frontmatter
from kantan_agents.subagent_files.loading.cache import FileResult
from kantan_agents.subagent_files.loading.catalog import FileCatalog, Scope, Shadowed
from kantan_agents.subagent_files.loading.loader import FileKind, FileLoader, Loaded, Results
from kantan_agents.subagent_files.loading.shared_work import SharedWork
from kantan_agents.subagent_files.names import name_key
from kantan_agents.subagent_files.problems import Problem, no_agent
from kantan_agents.subagent_files.remarks import remarks_of
from kantan_agents.support.arguments import checked_list, checked_number, checked_text

_MAX_WATCHED_ON_LOOP = 50
"""More ``stat`` calls would block the event loop for too long."""

ShadowedAgent = Shadowed
"""A definition that another one with the same name and a higher priority replaces."""


@attrs.frozen(eq=False, repr=False, slots=False)
class AgentCatalog(FileCatalog[AgentDefinition]):
    """An immutable snapshot of the loaded agents, sorted by name.

    Names match regardless of case and separators: ``Code Reviewer`` is ``code-reviewer``.

    Attributes:
        problems: Errors and warnings of all files, by path and line.
        shadowed: Definitions that another one with the same name and a higher priority replaces.
        repaired: Definitions from files that are not valid YAML, including shadowed ones.
    """

    _counted: ClassVar[str] = "agents"

    repaired: tuple[AgentDefinition, ...] = ()

    def search(self, text: str) -> tuple[AgentDefinition, ...]:
        """Return the agents whose name or description contains every word of ``text``, best match first.

        Without words, all agents match.
        """
        return self._index.search(checked_text("text", text))

    def details(self, name: str) -> dict[str, Any]:
        """Return all information about an agent as JSON data.

        Raises:
            AgentNotFoundError: E32: no agent has this name.

        Returns:
            The fields of the definition (``tools`` is a list or ``"*"``), ``path`` (None for a built-in
            agent), ``scope``, and two lists of strings: ``repairs``, and ``remarks`` such as limits without
            effect here and entries of ``tools`` that grant nothing.
        """
        entry = self._entry(name)
        definition = entry.value
        return {
            **definition.to_dict(),
            "tools": "*" if definition.tools == "*" else list(definition.tools),
            "path": None if definition.path is None else str(definition.path),
            "scope": entry.scope,
            "repairs": [str(repair) for repair in definition.repairs],
            "remarks": [remark.message for remark in remarks_of(definition)],
        }

    def scope_of(self, definition: AgentDefinition) -> Scope:
        """Return where an agent's definition was found.

        Raises:
            AgentNotFoundError: E32: no agent has this name.
        """
        return self._entry(definition.name).scope

    def _missing(self, name: str) -> KantanAgentsError:
        similar = difflib.get_close_matches(name_key(name), self._entries, n=5)
        names = dict.fromkeys([*(self._entries[key].value.name for key in similar), *self.names()])
        return AgentNotFoundError(name=name, available=tuple(names))

    @cached_property
    def _index(self) -> SearchIndex:
        return SearchIndex.of(self)

    @staticmethod
    def _warnings_of(value: AgentDefinition) -> tuple[Problem, ...]:
        return warnings_of(value)

    @staticmethod
    def _order_of(name: str) -> Any:
        return name.casefold(), name


def warnings_of(definition: AgentDefinition) -> tuple[Problem, ...]:
    """Return the notes, and a warning without a prompt."""
    if definition.path is None or definition.system_prompt.strip():
        return definition.notes
    no_prompt = Problem(definition.path, 1, "has no prompt: it cannot be run", "warning")
    return (no_prompt, *definition.notes)


class AgentLoader(FileLoader[AgentDefinition, AgentCatalog]):
    """Loads agents by name from the subagent files of a project and its user.

    Names match regardless of case and separators. For agents with the same name, the directory with the
    highest priority wins: project before user before built-in; in a project the nearest directory first, and
    in each ``.kode/agents`` before ``.claude/agents``. Any number of tasks and threads can share a loader.
    Results reflect the current files, except as ``recheck_seconds`` and ``pin`` describe.

    Args:
        directories: Directories to search instead, including subdirectories, in order of priority. They need
            not exist.
        cwd: The working directory to start from; by default the directory of the process.
        home: The home directory with the user's agents; by default the home of the process' user. If the user
            has none, as in many containers, the catalog's ``problems`` list the skipped directories.
        builtin: Definitions made in code, used if no file has their name.
        cache_size: Number of parsed files to cache, the most recently used; 0 for none. By default the loader
            caches every file that the last load found. With a smaller cache, loading all agents may read all
            of their files again.
        recheck_seconds: ``get_agent`` checks the directories and the agent's own file. It checks all files,
            and so notices that another file now has the name, if the last such check is this many seconds
            old. With 0 it checks all files each time.

    Raises:
        InvalidOptionError: E75: an argument has an invalid value, or a path needs a working or home directory
            that does not exist.
    """

    _kind = FileKind(
        folder="agents",
        made=AgentDefinition,
        errors=(AgentFileError, InvalidDefinitionError),
        log="kantan_agents.definitions",
        log_line="agent files cannot be used",
        values="AgentDefinitions",
    )
    _catalog = AgentCatalog

    def __init__(
        self,
        directories: Iterable[str | os.PathLike[str]] | None = None,
        *,
        cwd: str | os.PathLike[str] | None = None,
        home: str | os.PathLike[str] | None = None,
        builtin: Iterable[AgentDefinition] = (),
        cache_size: int | None = None,
        recheck_seconds: float = 1.0,
    ) -> None:
        given = None if directories is None else checked_list("directories", directories)
        super().__init__(given, cwd=cwd, home=home, builtin=builtin, cache_size=cache_size)
        self._recheck_seconds = checked_number("recheck_seconds", recheck_seconds)
        self._refresh_work = SharedWork(self._refresh, self._lock, self._log_errors)

    async def load_agents(self) -> AgentCatalog:
        """Load all agents.

        Files that cannot be read are listed in the catalog's ``problems``; the others load. Tasks that call
        this during a load share the next one.

        Returns:
            The current agents. If nothing has changed, this is the same object as before; unchanged files
            keep their definition objects.
        """
        return await self._load_async()

    async def get_agent(self, name: str) -> AgentDefinition:
        """Return the agent with this name.

        If nothing has changed, this costs one ``stat`` for each directory and one for the file, directly on
        the event loop: a microsecond or two each on a local disk. With more than 50 directories, and for
        anything slower, the work runs in a thread that tasks share.

        Args:
            name: The name, in any case and with any separators.

        Raises:
            AgentNotFoundError: E32: no agent has this name; the error lists all agents.
            InvalidOptionError: E75: ``name`` is not a str.
        """
        checked_text("name", name)
        if self._pinned is not None:
            return self._pinned.get(name)
        last = self._last
        if last is None or len(last.listing.watched) > _MAX_WATCHED_ON_LOOP or not self._is_current(last):
            loaded = await self._refresh_work.run_async()
            if loaded is not None:
                return loaded.catalog.get(name)
        definition = self._known(name, self._files.current)
        if definition is None:
            read = partial(self._known, name, self._files.read)
            definition = await to_thread.run_sync(read, abandon_on_cancel=True)
        return (await self.load_agents()).get(name) if definition is None else definition

    def load_agents_now(self) -> AgentCatalog:
        """Load all agents without an event loop; see ``load_agents``."""
        return self.load_now()

    def get_agent_now(self, name: str) -> AgentDefinition:
        """Return the agent with this name without an event loop; see ``get_agent``.

        Raises:
            AgentNotFoundError: E32: no agent has this name.
            InvalidOptionError: E75: ``name`` is not a str.
        """
        checked_text("name", name)
        if self._pinned is not None:
            return self._pinned.get(name)
        if self._last is None or not self._is_current(self._last):
            loaded = self._refresh_work.run()
            if loaded is not None:
                return loaded.catalog.get(name)
        definition = self._known(name, self._files.current) or self._known(name, self._files.read)
        return self.load_agents_now().get(name) if definition is None else definition

    def _is_current(self, loaded: Loaded[AgentCatalog]) -> bool:
        return loaded.age < self._recheck_seconds and loaded.listing.is_current()

    def _refresh(self) -> Loaded[AgentCatalog] | None:
        last = self._last
        return self._load() if last is None or not self._is_current(last) else None

    def _known(
        self, name: str, read: Callable[[str], FileResult[AgentDefinition] | None]
    ) -> AgentDefinition | None:
        """Return an agent from its file of the last load; None if all files must be loaded.

        While no directory has changed, a file that still has its name still has priority.
        """
        catalog = None if self._last is None else self._last.catalog
        known = None if catalog is None else catalog.find(name)
        if catalog is None or known is None or catalog.scope_of(known) == "builtin":
            return known
        result = read(str(known.path))
        found = None if result is None else result.value
        return found if found is not None and name_key(found.name) == name_key(name) else None

    def _parse(self, path: str, data: bytes) -> FileResult[AgentDefinition]:
        result = super()._parse(path, data)
        return FileResult(errors=(no_agent(path),)) if result.errors and lacks_frontmatter(data) else result

    def _build(self, results: Results, problems: tuple[Problem, ...]) -> AgentCatalog:
        read = (result.value for result, _ in results)
        repaired = tuple(one for one in read if one is not None and one.notes and one.repairs)
        return attrs.evolve(super()._build(results, problems), repaired=repaired)


@attrs.frozen(eq=False)
class SearchIndex:
    """An index of names and descriptions."""

    _entries: tuple[_Entry, ...]

    @classmethod
    def of(cls, definitions: Iterable[AgentDefinition]) -> SearchIndex:
        """Results of equal rank have the order of ``definitions``."""
        return cls(tuple(map(_entry, definitions)))

    def search(self, text: str) -> tuple[AgentDefinition, ...]:
        """Return the definitions with every word of ``text`` in name or description, best match first.

        Case and Unicode normalization do not matter, and neither do separators in a name.
        """
        folded = " ".join(_folded(text).split())
        words, key = folded.split(), name_key(text)
        ranked = ((_rank(entry, folded, words, key), entry) for entry in self._entries)
        found = [(rank, entry) for rank, entry in ranked if rank is not None]
        found.sort(key=lambda pair: pair[0])
        return tuple(entry.definition for _, entry in found)


@attrs.frozen(eq=False)
class _Entry:
    definition: AgentDefinition
    name: str
    key: str
    description: str


def _entry(definition: AgentDefinition) -> _Entry:
    name, description = _folded(definition.name), _folded(definition.description)
    return _Entry(definition, name, name_key(definition.name), description)


def _rank(entry: _Entry, text: str, words: list[str], key: str) -> int | None:
    if key:
        if entry.key == key:
            return 0
        if entry.key.startswith(key):
            return 1
        if key in entry.key:
            return 2
    in_name = [word in entry.name for word in words]
    if all(in_name):
        return 3
    if not all(named or word in entry.description for word, named in zip(words, in_name, strict=True)):
        return None
    if any(in_name):
        return 4
    return 5 if text in entry.description else 6


def _folded(text: str) -> str:
    # Case folding can denormalize a string.
    folded = unicodedata.normalize("NFKC", text).casefold()
    return folded if folded.isascii() else unicodedata.normalize("NFKC", folded)
