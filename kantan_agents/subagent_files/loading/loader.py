"""Loads files of one kind."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.subagent_files.loading.cache import FileResult, ParsedFiles, Reader
from kantan_agents.subagent_files.loading.catalog import CatalogT, Scope, build_catalog
from kantan_agents.subagent_files.loading.directories import (
    AgentDirectory,
    BaseDirectories,
    default_directories,
    given_directories,
)
from kantan_agents.subagent_files.loading.scan import SUBAGENT_FILES, Listing, Search, list_files
from kantan_agents.subagent_files.loading.shared_work import SharedWork
from kantan_agents.subagent_files.problems import FileError, Problem, problems_of
from kantan_agents.support.arguments import checked_int, checked_list, checked_path
from kantan_agents.support.log import get_logger

T = TypeVar("T")
Results = list[tuple[FileResult[Any], Scope]]
Directories = str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None

_MAX_LOGGED = 20


def monotonic() -> float:
    """Return the clock for the age of a load, in seconds."""
    return time.monotonic()


@attrs.frozen
class FileKind:
    """The differences between agents, skills and commands.

    The first of ``errors`` also reports an unreadable file. ``read`` is None to follow links.
    """

    folder: str
    made: type[Any]
    errors: tuple[type[FileError], ...]
    log: str
    log_line: str
    values: str
    search: Search = SUBAGENT_FILES
    read: Reader | None = None


@attrs.frozen(eq=False)
class Loaded(Generic[CatalogT]):
    """The result of a load; the previous load did not have ``new_errors``."""

    catalog: CatalogT
    source: tuple[Results, tuple[Problem, ...]]
    listing: Listing
    since: float
    new_errors: list[Problem]

    @property
    def age(self) -> float:
        """Seconds since the load started."""
        return monotonic() - self.since


class FileLoader(Generic[T, CatalogT]):
    """Finds files, reads the changed ones, and builds a catalog."""

    _kind: ClassVar[FileKind]
    _catalog: type[CatalogT]

    def __init__(
        self,
        directories: Directories = None,
        *,
        cwd: str | os.PathLike[str] | None = None,
        home: str | os.PathLike[str] | None = None,
        builtin: Iterable[T] = (),
        cache_size: int | None = None,
    ) -> None:
        kind = self._kind
        bases = BaseDirectories(
            None if cwd is None else checked_path("cwd", cwd),
            None if home is None else checked_path("home", home),
        )
        if isinstance(directories, (str, os.PathLike)):
            directories = [directories]
        search_path = (
            default_directories(bases, os.environ, kind.folder)
            if directories is None
            else given_directories(checked_list("directories", directories), bases)
        )
        self.directories: tuple[AgentDirectory, ...] = search_path.directories
        self._skipped = search_path.skipped
        self._builtin: list[FileResult[T]] = []
        for value in checked_list("builtin", builtin):
            if not isinstance(value, kind.made):
                reason = f"must hold {kind.values}, not {value!r:.200}"
                raise InvalidOptionError(option="builtin", reason=reason)
            self._builtin.append(FileResult(value))
        size = None if cache_size is None else checked_int("cache_size", cache_size, 0)
        self._files: ParsedFiles[T] = ParsedFiles(
            self._parse, size, read=kind.read, unreadable_code=kind.errors[0].code
        )
        self._last: Loaded[CatalogT] | None = None
        self._pinned: CatalogT | None = None
        self._errors: frozenset[Problem] = frozenset()
        # Held while files are read, so an event loop must never acquire it.
        self._lock = threading.Lock()
        self._work = SharedWork(self._load, self._lock, self._log_errors)

    def pin(self, catalog: CatalogT | None = None) -> CatalogT:
        """Use the current files from now on, even if they change.

        A file determines what its agent may do, and a tool may be able to change the file. After a pin at the
        start of a conversation, such changes have no effect until the next ``pin``. Only the ``SKILL.md`` of
        a skill is pinned. Blocks while it reads files.

        Args:
            catalog: The catalog to use; None to load the current files.

        Returns:
            The catalog in use from now on.
        """
        self._pinned = self.read_files() if catalog is None else catalog
        return self._pinned

    def load_now(self) -> CatalogT:
        """Return the pinned catalog, or else load the current files. May block."""
        return self.read_files() if self._pinned is None else self._pinned

    def read_files(self) -> CatalogT:
        """Load the current files, even if a catalog is pinned. Blocks."""
        return self._work.run().catalog

    async def _load_async(self) -> CatalogT:
        return (await self._work.run_async()).catalog if self._pinned is None else self._pinned

    def _parse(self, path: str, data: bytes) -> FileResult[T]:
        try:
            return FileResult(self._kind.made.loads(data, path=Path(path)))
        except self._kind.errors as error:
            return FileResult(errors=problems_of(path, error))

    def _load(self) -> Loaded[CatalogT]:
        since = monotonic()
        last = self._last
        listing = None if last is None else last.listing
        if listing is None or listing.has_errors or not listing.is_current():
            listing = list_files(self.directories, self._kind.search)
        source = (list(self._results(listing)), (*self._skipped, *listing.problems))
        self._files.keep_only(file.path for file in listing.files)
        catalog = last.catalog if last and last.source == source else self._build(*source)
        errors = [problem for problem in catalog.problems if problem.severity == "error"]
        new_errors = [problem for problem in errors if problem not in self._errors]
        self._errors = frozenset(errors)
        self._last = Loaded(catalog, source, listing, since, new_errors)
        return self._last

    def _build(self, results: Results, problems: tuple[Problem, ...]) -> CatalogT:
        return build_catalog(self._catalog, results, problems)

    def _results(self, listing: Listing) -> Iterator[tuple[FileResult[T], Scope]]:
        for file in listing.files:
            result = self._files.read(file.path)
            if result is not None:
                yield result, file.scope
        for built in self._builtin:
            yield built, "builtin"

    def _log_errors(self, loaded: Loaded[CatalogT] | None) -> None:
        if loaded is not None and loaded.new_errors:
            # A file name may contain bytes that are not Unicode, which a log cannot store.
            shown = [str(one).encode("utf-8", "backslashreplace").decode() for one in loaded.new_errors]
            log = get_logger(self._kind.log)
            log.warning(self._kind.log_line, count=len(shown), problems=shown[:_MAX_LOGGED])

    def __repr__(self) -> str:
        places = ", ".join(repr(str(directory.path)) for directory in self.directories)
        return f"{type(self).__name__}([{places}])"
