"""Loads the agents of a project and its user from their files, and keeps them as long as the files stay."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator

import attrs
from anyio import to_thread

from kantan_agents.definitions.definition import AgentDefinition
from kantan_agents.definitions.loading.cache import FileCache, Reading
from kantan_agents.definitions.loading.catalog import AgentCatalog, Candidate, assembled
from kantan_agents.definitions.loading.directories import (
    AgentDirectory,
    Whereabouts,
    default_directories,
    given_directories,
)
from kantan_agents.definitions.loading.scan import Listing, listed
from kantan_agents.definitions.loading.shared_work import SharedWork
from kantan_agents.definitions.names import name_key
from kantan_agents.definitions.problems import Problem
from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.arguments import (
    checked_int,
    checked_list,
    checked_number,
    checked_path,
    checked_text,
)
from kantan_agents.support.log import get_logger

_log = get_logger("kantan_agents.definitions")

_LOGGED = 20
"""How many errors one line of the log names."""

_FEW = 50
"""How many directories are looked at on an event loop: with more it would be held up for too long."""


def monotonic() -> float:
    """Return the seconds that tell when everything was looked at last."""
    return time.monotonic()


@attrs.frozen(eq=False)
class _Known:
    """Where the agents were found last: a file, or the built-in definition itself."""

    listing: Listing
    places: dict[str, str | AgentDefinition]
    since: float


@attrs.frozen(eq=False)
class _Loaded:
    """All agents, and the errors that are new since the last time."""

    catalog: AgentCatalog
    appeared: list[Problem]


class AgentLoader:
    """Finds agents by name in the files of a project and its user.

    Names match whatever their case and separators. Of two agents of one name, the one of the directory that
    comes first is used: project before user before built-in, the nearest directory of a project first, in
    each ``.kode/agents`` before ``.claude/agents``. Safe from any number of tasks and threads. What it
    returns is what the files say at that moment, with one exception, which ``recheck_seconds`` is about.

    Args:
        directories: Where to look instead, with all that is below; the first comes first. They need not
            exist.
        cwd: The working directory to start from, else that of the process now.
        home: The home to look for the user's agents in, else that of the process' user. A user may have
            none, as in many containers; the catalog's ``problems`` then say where nobody looks.
        builtin: Definitions made in code, used where no file has their name.
        cache_size: How many files are kept parsed; 0 for none.
        recheck_seconds: ``get_agent`` looks at the directories and at the agent's own file. It does not see
            that some other file was edited in place and now has that name, unless all files were looked at
            less than so many seconds ago. With 0 it looks at all files each time.

    Raises:
        InvalidOptionError: E75, an argument has a value it cannot have, or a path is relative to a working
            directory or a home that there is not.
    """

    def __init__(
        self,
        directories: Iterable[str | os.PathLike[str]] | None = None,
        *,
        cwd: str | os.PathLike[str] | None = None,
        home: str | os.PathLike[str] | None = None,
        builtin: Iterable[AgentDefinition] = (),
        cache_size: int = 4096,
        recheck_seconds: float = 1.0,
    ) -> None:
        here = Whereabouts(
            None if cwd is None else checked_path("cwd", cwd),
            None if home is None else checked_path("home", home),
        )
        places = (
            default_directories(here, os.environ)
            if directories is None
            else given_directories(checked_list("directories", directories), here)
        )
        self.directories: tuple[AgentDirectory, ...] = places.directories
        self._left_out = places.left_out
        self._builtin = _checked_definitions(builtin)
        self._recheck_seconds = checked_number("recheck_seconds", recheck_seconds)
        self._files = FileCache(checked_int("cache_size", cache_size, 0))
        self._known: _Known | None = None
        self._errors: frozenset[Problem] = frozenset()
        # Held while files are read, so never taken on an event loop.
        lock = threading.Lock()
        self._loads = SharedWork(self._load, lock, _report)
        self._looks = SharedWork(self._look, lock, _report)

    async def load_agents(self) -> AgentCatalog:
        """Load all agents.

        What cannot be read stands in the catalog's ``problems``; it does not keep the others from loading.
        Tasks that ask while another load is under way share the next one.

        Returns:
            The agents there are now. Files that have not changed give the very same definitions again.
        """
        return (await self._loads.soon()).catalog

    async def get_agent(self, name: str) -> AgentDefinition:
        """Return the agent of a name.

        Where nothing has changed it costs a ``stat`` for each directory and one for the file. These are
        made right on the event loop, which on a local disc takes a microsecond or two each; those of more
        than 50 directories, and whatever costs more, in a thread that tasks share.

        Args:
            name: The name, in any case and with any separators.

        Raises:
            AgentNotFoundError: E32: there is none; the error lists those there are.
            InvalidOptionError: E75, ``name`` is no str.
        """
        checked_text("name", name)
        known = self._known
        found: _Known | _Loaded = (
            known
            if known is not None and len(known.listing.watched) <= _FEW and self._holds(known)
            else await self._looks.soon()
        )
        if isinstance(found, _Loaded):
            return found.catalog.get(name)
        definition = self._kept(found, name)
        if definition is None:
            definition = await to_thread.run_sync(self._read, found, name, abandon_on_cancel=True)
        return (await self.load_agents()).get(name) if definition is None else definition

    def load_agents_now(self) -> AgentCatalog:
        """Load all agents, as ``load_agents`` does, where there is no event loop."""
        return self._loads.now().catalog

    def get_agent_now(self, name: str) -> AgentDefinition:
        """Return the agent of a name, as ``get_agent`` does, where there is no event loop.

        Raises:
            AgentNotFoundError: E32: there is none.
        """
        checked_text("name", name)
        known = self._known
        found = known if known is not None and self._holds(known) else self._looks.now()
        if isinstance(found, _Loaded):
            return found.catalog.get(name)
        definition = self._kept(found, name) or self._read(found, name)
        return self.load_agents_now().get(name) if definition is None else definition

    def __repr__(self) -> str:
        return f"AgentLoader([{', '.join(repr(str(directory.path)) for directory in self.directories)}])"

    def _holds(self, known: _Known) -> bool:
        return monotonic() - known.since < self._recheck_seconds and known.listing.holds()

    def _kept(self, known: _Known, name: str) -> AgentDefinition | None:
        """Return an agent that is where it was found last, if its file need not be read. It costs a ``stat``.

        A file that still has the name it had is still the one that counts as long as no directory changed.
        """
        place = known.places.get(name_key(name))
        if place is None or isinstance(place, AgentDefinition):
            return place
        return _called(name, self._files.current(place))

    def _read(self, known: _Known, name: str) -> AgentDefinition | None:
        """Return an agent that is where it was found last, None where only loading everything can tell."""
        place = known.places.get(name_key(name))
        return _called(name, self._files.read(place)) if isinstance(place, str) else None

    def _look(self) -> _Known | _Loaded:
        """Return where the agents are; load them if that cannot be told from what was found last."""
        known = self._known
        return self._load() if known is None or not self._holds(known) else known

    def _load(self) -> _Loaded:
        since = monotonic()
        listing = listed(self.directories)
        places: dict[str, str | AgentDefinition] = {}
        catalog = assembled(self._candidates(listing, places), (*self._left_out, *listing.problems))
        self._known = _Known(listing, places, since)
        errors = [problem for problem in catalog.problems if problem.severity == "error"]
        appeared = [problem for problem in errors if problem not in self._errors]
        self._errors = frozenset(errors)
        return _Loaded(catalog, appeared)

    def _candidates(self, listing: Listing, places: dict[str, str | AgentDefinition]) -> Iterator[Candidate]:
        for file in listing.files:
            reading = self._files.read(file.path)
            if reading is None:
                continue
            if reading.definition is not None:
                places.setdefault(name_key(reading.definition.name), file.path)
            yield Candidate(reading.definition, reading.errors, file.scope)
        for definition in self._builtin:
            places.setdefault(name_key(definition.name), definition)
            yield Candidate(definition, (), "builtin")


def _checked_definitions(builtin: Iterable[AgentDefinition]) -> tuple[AgentDefinition, ...]:
    definitions = tuple(checked_list("builtin", builtin))
    for definition in definitions:
        if not isinstance(definition, AgentDefinition):
            reason = f"must hold AgentDefinitions, not {definition!r}"
            raise InvalidOptionError(option="builtin", reason=reason)
    return definitions


def _called(name: str, reading: Reading | None) -> AgentDefinition | None:
    definition = None if reading is None else reading.definition
    return definition if definition is not None and name_key(definition.name) == name_key(name) else None


def _report(found: _Known | _Loaded) -> None:
    if isinstance(found, _Loaded) and found.appeared:
        # A file's name can hold bytes that are no text; a log is text.
        listed_errors = [_printable(str(problem)) for problem in found.appeared[:_LOGGED]]
        _log.warning("agent files cannot be used", count=len(found.appeared), problems=listed_errors)


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
