"""``SkillLoader`` and ``CommandLoader``: load the skills and commands of a project and its user."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Generic

from kantan_agents.errors import CommandFileError, InvalidOptionError, InvalidSkillError, SkillFileError
from kantan_agents.subagent_files.frontmatter.document import MAX_BYTES
from kantan_agents.subagent_files.loading.cache import FileResult, ParsedFiles
from kantan_agents.subagent_files.loading.directories import (
    AgentDirectory,
    BaseDirectories,
    default_directories,
    given_directories,
)
from kantan_agents.subagent_files.loading.scan import Listing
from kantan_agents.subagent_files.loading.shared_work import SharedWork
from kantan_agents.subagent_files.problems import Problem, problems_of
from kantan_agents.support.arguments import checked_int, checked_list, checked_path
from kantan_agents.support.log import get_logger
from kantan_agents.tools.skills.catalog import CatalogT, CommandCatalog, SkillCatalog, build_catalog
from kantan_agents.tools.skills.command_file import CommandFile
from kantan_agents.tools.skills.confined import open_file
from kantan_agents.tools.skills.scan import list_commands, list_skills
from kantan_agents.tools.skills.skill import Skill

_log = get_logger("kantan_agents.skills")
_MOST_LOGGED = 20

Directories = str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None


class _SkillFiles(ParsedFiles[Skill]):
    unreadable_code = SkillFileError.code

    def read_bytes(self, path: str) -> tuple[bytes, os.stat_result]:
        return open_file(path, MAX_BYTES + 1)

    def parse(self, path: str, data: bytes) -> FileResult[Skill]:
        try:
            return FileResult(Skill.loads(data, path=Path(path)))
        except (SkillFileError, InvalidSkillError) as error:
            return FileResult(errors=problems_of(path, error))


class _CommandFiles(ParsedFiles[CommandFile]):
    unreadable_code = CommandFileError.code

    def read_bytes(self, path: str) -> tuple[bytes, os.stat_result]:
        return open_file(path, MAX_BYTES + 1)

    def parse(self, path: str, data: bytes) -> FileResult[CommandFile]:
        try:
            return FileResult(CommandFile.loads(data, path=Path(path)))
        except CommandFileError as error:
            return FileResult(errors=problems_of(path, error))


class _Loader(ABC, Generic[CatalogT]):
    """Finds files, reads those that have changed, and builds a catalog."""

    _kind: ClassVar[str]
    _made: ClassVar[type[Any]]

    def __init__(
        self,
        directories: Directories,
        cwd: str | os.PathLike[str] | None,
        home: str | os.PathLike[str] | None,
        builtin: Iterable[Any],
        cache_size: int | None,
    ) -> None:
        bases = BaseDirectories(
            None if cwd is None else checked_path("cwd", cwd),
            None if home is None else checked_path("home", home),
        )
        if isinstance(directories, (str, os.PathLike)):
            directories = [directories]
        search_path = (
            default_directories(bases, os.environ, self._kind)
            if directories is None
            else given_directories(checked_list("directories", directories), bases)
        )
        self.directories: tuple[AgentDirectory, ...] = search_path.directories
        self._skipped = search_path.skipped
        self._builtin = tuple(checked_list("builtin", builtin))
        for one in self._builtin:
            if not isinstance(one, self._made):
                reason = f"must hold objects of the class {self._made.__name__}, not {one!r:.200}"
                raise InvalidOptionError(option="builtin", reason=reason)
        size = None if cache_size is None else checked_int("cache_size", cache_size, 0)
        self._files: ParsedFiles[Any] = self._parsed_files(size)
        self._built = tuple(map(FileResult, self._builtin))
        self._last: tuple[list[Any], tuple[Problem, ...], CatalogT] | None = None
        self._listing: tuple[tuple[str, ...], Listing] | None = None
        self._pinned: CatalogT | None = None
        self._errors: frozenset[Problem] = frozenset()
        # Held while files are read, so it is never acquired on an event loop.
        self._work: SharedWork[CatalogT] = SharedWork(self._load, threading.Lock(), self._log_errors)

    def pin(self, catalog: CatalogT | None = None) -> CatalogT:
        """Pin what the files hold now, as `AgentLoader.pin` does; of a skill, the ``SKILL.md`` alone."""
        self._pinned = self.read_files() if catalog is None else catalog
        return self._pinned

    def load_now(self) -> CatalogT:
        """Return what is used now: what was pinned, or what the files hold. May block."""
        return self.read_files() if self._pinned is None else self._pinned

    def read_files(self) -> CatalogT:
        """Return what the files hold now, also if something else is pinned. Blocks."""
        return self._work.run()

    @abstractmethod
    def _parsed_files(self, size: int | None) -> ParsedFiles[Any]: ...

    @abstractmethod
    def _listed(self) -> Listing: ...

    @abstractmethod
    def _catalog(self, results: Iterable[FileResult[Any]], problems: Iterable[Problem]) -> CatalogT: ...

    def _load(self) -> CatalogT:
        listing: Listing = self._current_listing()
        results = list(self._results(listing))
        problems = (*self._skipped, *listing.problems)
        self._files.keep_only(file.path for file in listing.files)
        last = self._last
        if last is not None and last[1] == problems and _are_same(last[0], results):
            return last[2]
        catalog = self._catalog(results, problems)
        self._last = (results, problems, catalog)
        return catalog

    def _current_listing(self) -> Listing:
        """Return the last listing if a new one would be the same; that costs one ``stat`` per directory."""
        roots = tuple(os.path.realpath(directory.path) for directory in self.directories)
        known = self._listing
        if known is not None and known[0] == roots and known[1].is_current():
            return known[1]
        listing: Listing = self._listed()
        self._listing = (roots, listing)
        return listing

    def _results(self, listing: Listing) -> Iterator[FileResult[Any]]:
        for file in listing.files:
            result = self._files.read(file.path)
            if result is not None:
                yield result
        yield from self._built

    def _log_errors(self, catalog: CatalogT) -> None:
        errors = [problem for problem in catalog.problems if problem.severity == "error"]
        new = [problem for problem in errors if problem not in self._errors]
        self._errors = frozenset(errors)
        if new:
            # A file name may contain bytes that are not text, which a log cannot hold.
            shown = [str(problem).encode("utf-8", "backslashreplace").decode() for problem in new]
            _log.warning(f"{self._kind} cannot be used", count=len(new), problems=shown[:_MOST_LOGGED])

    def __repr__(self) -> str:
        places = ", ".join(repr(str(directory.path)) for directory in self.directories)
        return f"{type(self).__name__}([{places}])"


def _are_same(known: list[Any], results: list[Any]) -> bool:
    return len(known) == len(results) and all(a is b for a, b in zip(known, results, strict=True))


class SkillLoader(_Loader[SkillCatalog]):
    """Loads skills from their folders, and reads a ``SKILL.md`` again only after it has changed.

    A skill is a folder with a ``SKILL.md``, in one of the directories or in a folder that groups skills. If
    two skills have the same name, the one in the directory with the higher priority is used. Links are not
    followed below the directories. Safe to use from any number of tasks and threads.

    Args:
        directories: A directory, or several in order of priority, which need not exist. By default those of
            the project and its user, as for `AgentLoader`: ``.kode/skills`` and ``.claude/skills``.
        cwd: The working directory to start from; by default that of the process.
        home: The home directory with the user's skills; by default that of the process' user.
        builtin: Skills made in code, used if no file has their name.
        cache_size: Number of parsed files to keep; by default those that the last load found.

    Raises:
        InvalidOptionError: E75, an argument has an invalid value, or a path needs a working or home directory
            that does not exist.
    """

    _kind = "skills"
    _made = Skill

    def __init__(
        self,
        directories: Directories = None,
        *,
        cwd: str | os.PathLike[str] | None = None,
        home: str | os.PathLike[str] | None = None,
        builtin: Iterable[Skill] = (),
        cache_size: int | None = None,
    ) -> None:
        super().__init__(directories, cwd, home, builtin, cache_size)

    async def load_skills(self) -> SkillCatalog:
        """Load all skills.

        Files that cannot be read are listed in the catalog's ``problems`` and do not prevent the others from
        loading. Tasks that call this while another load is running share the next one.

        Returns:
            The current skills; the same object as before if nothing has changed.
        """
        return await self._work.run_async() if self._pinned is None else self._pinned

    async def get_skill(self, name: str) -> Skill:
        """Return the skill with this name.

        Raises:
            SkillNotFoundError: E189, there is no such skill.
        """
        return (await self.load_skills()).get(name)

    def load_skills_now(self) -> SkillCatalog:
        """Load all skills, as ``load_skills`` does, without an event loop."""
        return self.load_now()

    def get_skill_now(self, name: str) -> Skill:
        """Return the skill with this name, without an event loop.

        Raises:
            SkillNotFoundError: E189, there is no such skill.
        """
        return self.load_skills_now().get(name)

    def _parsed_files(self, size: int | None) -> ParsedFiles[Any]:
        return _SkillFiles(size)

    def _listed(self) -> Listing:
        return list_skills(self.directories)

    def _catalog(self, results: Iterable[FileResult[Any]], problems: Iterable[Problem]) -> SkillCatalog:
        return build_catalog(SkillCatalog, results, problems)


class CommandLoader(_Loader[CommandCatalog]):
    """Loads slash commands from Markdown files, and reads a file again only after it has changed.

    The name of a command is that of its file. Directories are searched recursively; links below them are not
    followed. If two files have the same name, the one in the directory with the higher priority is used. Safe
    to use from any number of tasks and threads.

    Args:
        directories: A directory, or several in order of priority, which need not exist. By default those of
            the project and its user: ``.kode/commands`` and ``.claude/commands``.
        cwd: The working directory to start from; by default that of the process.
        home: The home directory with the user's commands; by default that of the process' user.
        builtin: Commands made in code, used if no file has their name.
        cache_size: Number of parsed files to keep; by default those that the last load found.

    Raises:
        InvalidOptionError: E75, an argument has an invalid value, or a path needs a working or home directory
            that does not exist.
    """

    _kind = "commands"
    _made = CommandFile

    def __init__(
        self,
        directories: Directories = None,
        *,
        cwd: str | os.PathLike[str] | None = None,
        home: str | os.PathLike[str] | None = None,
        builtin: Iterable[CommandFile] = (),
        cache_size: int | None = None,
    ) -> None:
        super().__init__(directories, cwd, home, builtin, cache_size)

    async def load_commands(self) -> CommandCatalog:
        """Load all commands. Files that cannot be read are listed in the catalog's ``problems``.

        Returns:
            The current commands; the same object as before if nothing has changed.
        """
        return await self._work.run_async() if self._pinned is None else self._pinned

    def load_commands_now(self) -> CommandCatalog:
        """Load all commands, as ``load_commands`` does, without an event loop."""
        return self.load_now()

    def _parsed_files(self, size: int | None) -> ParsedFiles[Any]:
        return _CommandFiles(size)

    def _listed(self) -> Listing:
        return list_commands(self.directories)

    def _catalog(self, results: Iterable[FileResult[Any]], problems: Iterable[Problem]) -> CommandCatalog:
        return build_catalog(CommandCatalog, results, problems)
