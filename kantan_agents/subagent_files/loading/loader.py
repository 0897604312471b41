"""Loads the agents of a project and its user from files, and caches them until the files change."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator

import attrs
from anyio import to_thread

from kantan_agents.errors import InvalidOptionError
from kantan_agents.subagent_files.definition import AgentDefinition
from kantan_agents.subagent_files.loading.cache import FileCache, FileResult
from kantan_agents.subagent_files.loading.catalog import AgentCatalog, Candidate, build_catalog
from kantan_agents.subagent_files.loading.directories import (
    AgentDirectory,
    BaseDirectories,
    default_directories,
    given_directories,
)
from kantan_agents.subagent_files.loading.scan import Listing, list_files
from kantan_agents.subagent_files.loading.shared_work import SharedWork
from kantan_agents.subagent_files.names import name_key
from kantan_agents.subagent_files.problems import Problem
from kantan_agents.support.arguments import (
    checked_int,
    checked_list,
    checked_number,
    checked_path,
    checked_text,
)
from kantan_agents.support.log import get_logger

_log = get_logger("kantan_agents.definitions")

_MAX_LOGGED = 20
"""Maximum number of errors in one log line."""

_MAX_WATCHED_ON_LOOP = 50
"""With more watched paths, their ``stat`` calls would block the event loop for too long."""


def monotonic() -> float:
    """Return the time in seconds that measures the age of a snapshot."""
    return time.monotonic()


@attrs.frozen(eq=False)
class _Snapshot:
    """Where each agent was found in the last load: its file, or the built-in definition itself."""

    listing: Listing
    sources: dict[str, str | AgentDefinition]
    since: float


@attrs.frozen(eq=False)
class _Loaded:
    """All agents, and the errors that are new since the last load."""

    catalog: AgentCatalog
    new_errors: list[Problem]


class AgentLoader:
    """Loads agents by name from the subagent files of a project and its user.

    Names match regardless of case and separators. If two agents have the same name, the one in the directory
    with the higher priority is used: project before user before built-in; in a project the nearest
    directory first, and in each ``.kode/agents`` before ``.claude/agents``. Safe to use from any number of
    tasks and threads. Results always reflect the current files, apart from two exceptions: see
    ``recheck_seconds`` and ``pin``.

    Args:
        directories: Directories to search instead, including subdirectories, in order of priority. They need
            not exist.
        cwd: The working directory to start from; by default that of the process.
        home: The home directory with the user's agents; by default that of the process' user. If the user
            has none, as in many containers, the catalog's ``problems`` list the skipped directories.
        builtin: Definitions made in code, used if no file has their name.
        cache_size: Number of parsed files to keep, the most recently used; 0 for none. By default the loader
            keeps every file that the last load found, so the files in the directories bound its memory. With
            fewer than these, loading all agents may read all of their files again.
        recheck_seconds: ``get_agent`` checks the directories and the agent's own file. If another file was
            edited in place and now has that name, it notices only when all files are checked again, which
            happens once they were last checked this many seconds ago. With 0 it checks all files each time.

    Raises:
        InvalidOptionError: E75, an argument has an invalid value, or a path needs a working or home directory
            that does not exist.
    """

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
        bases = BaseDirectories(
            None if cwd is None else checked_path("cwd", cwd),
            None if home is None else checked_path("home", home),
        )
        search_path = (
            default_directories(bases, os.environ)
            if directories is None
            else given_directories(checked_list("directories", directories), bases)
        )
        self.directories: tuple[AgentDirectory, ...] = search_path.directories
        self._skipped = search_path.skipped
        self._builtin = _checked_definitions(builtin)
        self._recheck_seconds = checked_number("recheck_seconds", recheck_seconds)
        self._files = FileCache(None if cache_size is None else checked_int("cache_size", cache_size, 0))
        self._snapshot: _Snapshot | None = None
        self._pinned: AgentCatalog | None = None
        self._errors: frozenset[Problem] = frozenset()
        # Held while files are read, so it is never acquired on an event loop.
        lock = threading.Lock()
        self._load_work = SharedWork(self._load, lock, _log_errors)
        self._refresh_work = SharedWork(self._refresh, lock, _log_errors)

    async def load_agents(self) -> AgentCatalog:
        """Load all agents.

        Files that cannot be read are listed in the catalog's ``problems`` and do not prevent the others from
        loading. Tasks that call this while another load is running share the next one.

        Returns:
            The current agents. Unchanged files give the same definition objects as before.
        """
        return (await self._load_work.run_async()).catalog if self._pinned is None else self._pinned

    def pin(self, catalog: AgentCatalog | None = None) -> AgentCatalog:
        """Answer from now on with the agents as they are now, whatever happens to their files.

        An agent file says what its agent may do, and a tool may be able to change it. With agents that were
        pinned when a conversation began, such a change has no effect until ``pin`` is called again. Blocks
        while files are read.

        Args:
            catalog: The agents; None for those that the files hold now.

        Returns:
            The agents that are used from now on.
        """
        self._pinned = self.read_files() if catalog is None else catalog
        return self._pinned

    def read_files(self) -> AgentCatalog:
        """Return the agents that the files hold now, also if others are pinned. Blocks."""
        return self._load_work.run().catalog

    async def get_agent(self, name: str) -> AgentDefinition:
        """Return the agent with this name.

        If nothing has changed, it costs one ``stat`` for each directory and one for the file. These run
        directly on the event loop and take a microsecond or two each on a local disk. With more than 50
        directories, and for anything that costs more, the work runs in a thread that tasks share.

        Args:
            name: The name, in any case and with any separators.

        Raises:
            AgentNotFoundError: E32: there is no such agent; the error lists all agents.
            InvalidOptionError: E75, ``name`` is not a str.
        """
        checked_text("name", name)
        if self._pinned is not None:
            return self._pinned.get(name)
        snapshot = self._snapshot
        found: _Snapshot | _Loaded = (
            snapshot
            if snapshot is not None
            and len(snapshot.listing.watched) <= _MAX_WATCHED_ON_LOOP
            and self._is_current(snapshot)
            else await self._refresh_work.run_async()
        )
        if isinstance(found, _Loaded):
            return found.catalog.get(name)
        definition = self._cached(found, name)
        if definition is None:
            definition = await to_thread.run_sync(self._read, found, name, abandon_on_cancel=True)
        return (await self.load_agents()).get(name) if definition is None else definition

    def load_agents_now(self) -> AgentCatalog:
        """Load all agents, as ``load_agents`` does, without an event loop."""
        return self.read_files() if self._pinned is None else self._pinned

    def get_agent_now(self, name: str) -> AgentDefinition:
        """Return the agent with this name, as ``get_agent`` does, without an event loop.

        Raises:
            AgentNotFoundError: E32: there is no such agent.
        """
        checked_text("name", name)
        if self._pinned is not None:
            return self._pinned.get(name)
        snapshot = self._snapshot
        is_current = snapshot is not None and self._is_current(snapshot)
        found = snapshot if snapshot is not None and is_current else self._refresh_work.run()
        if isinstance(found, _Loaded):
            return found.catalog.get(name)
        definition = self._cached(found, name) or self._read(found, name)
        return self.load_agents_now().get(name) if definition is None else definition

    def __repr__(self) -> str:
        return f"AgentLoader([{', '.join(repr(str(directory.path)) for directory in self.directories)}])"

    def _is_current(self, snapshot: _Snapshot) -> bool:
        return monotonic() - snapshot.since < self._recheck_seconds and snapshot.listing.is_current()

    def _cached(self, snapshot: _Snapshot, name: str) -> AgentDefinition | None:
        """Return an agent from its known source, if its file need not be read. Costs one ``stat``.

        While no directory has changed, a file that still has its name still has priority.
        """
        source = snapshot.sources.get(name_key(name))
        if source is None or isinstance(source, AgentDefinition):
            return source
        return _if_named(name, self._files.current(source))

    def _read(self, snapshot: _Snapshot, name: str) -> AgentDefinition | None:
        """Read an agent from its known source; None if only loading all files can find it."""
        source = snapshot.sources.get(name_key(name))
        return _if_named(name, self._files.read(source)) if isinstance(source, str) else None

    def _refresh(self) -> _Snapshot | _Loaded:
        """Return the snapshot if it is still current, else load all agents."""
        snapshot = self._snapshot
        return self._load() if snapshot is None or not self._is_current(snapshot) else snapshot

    def _load(self) -> _Loaded:
        since = monotonic()
        listing = list_files(self.directories)
        sources: dict[str, str | AgentDefinition] = {}
        catalog = build_catalog(self._candidates(listing, sources), (*self._skipped, *listing.problems))
        self._files.keep_only(file.path for file in listing.files)
        self._snapshot = _Snapshot(listing, sources, since)
        errors = [problem for problem in catalog.problems if problem.severity == "error"]
        new_errors = [problem for problem in errors if problem not in self._errors]
        self._errors = frozenset(errors)
        return _Loaded(catalog, new_errors)

    def _candidates(self, listing: Listing, sources: dict[str, str | AgentDefinition]) -> Iterator[Candidate]:
        for file in listing.files:
            result = self._files.read(file.path)
            if result is None:
                continue
            if result.definition is not None:
                sources.setdefault(name_key(result.definition.name), file.path)
            yield Candidate(result.definition, result.errors, file.scope)
        for definition in self._builtin:
            sources.setdefault(name_key(definition.name), definition)
            yield Candidate(definition, (), "builtin")


def _checked_definitions(builtin: Iterable[AgentDefinition]) -> tuple[AgentDefinition, ...]:
    definitions = tuple(checked_list("builtin", builtin))
    for definition in definitions:
        if not isinstance(definition, AgentDefinition):
            reason = f"must hold AgentDefinitions, not {definition!r}"
            raise InvalidOptionError(option="builtin", reason=reason)
    return definitions


def _if_named(name: str, result: FileResult[AgentDefinition] | None) -> AgentDefinition | None:
    definition = None if result is None else result.definition
    return definition if definition is not None and name_key(definition.name) == name_key(name) else None


def _log_errors(found: _Snapshot | _Loaded) -> None:
    if isinstance(found, _Loaded) and found.new_errors:
        # A file name may contain bytes that are not text, which a log cannot hold.
        problems = [_printable(str(problem)) for problem in found.new_errors[:_MAX_LOGGED]]
        _log.warning("agent files cannot be used", count=len(found.new_errors), problems=problems)


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
