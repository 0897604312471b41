"""The directories to search for subagent files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Literal

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.subagent_files.problems import Problem
from kantan_agents.support.arguments import checked_path

DirectoryScope = Literal["project", "user", "given"]

_CONFIG_DIRS = (("KODE_CONFIG_DIR", ".kode"), ("CLAUDE_CONFIG_DIR", ".claude"))
_AGENTS = "agents"


@attrs.frozen
class AgentDirectory:
    """A directory to search for subagent files, including its subdirectories.

    Attributes:
        path: The directory, absolute. It need not exist.
        scope: ``project``: from the working directory up to the root of its repository; ``user``: a directory
            of the user; ``given``: passed by the caller.
    """

    path: Path
    scope: DirectoryScope


class BaseDirectories:
    """The working and the home directory, determined only when a path needs them."""

    def __init__(
        self, cwd: str | os.PathLike[str] | None = None, home: str | os.PathLike[str] | None = None
    ) -> None:
        self._cwd = cwd
        self._home = home

    @cached_property
    def cwd(self) -> Path:
        """Absolute; raises E75 if it does not exist."""
        given = Path(self._cwd or "")
        if given.is_absolute():
            return given
        try:
            return Path.cwd() / given
        except OSError as error:
            reason = f"there is no working directory ({error.strerror}): change to another, or name one"
            raise InvalidOptionError(option="cwd", reason=reason) from error

    @cached_property
    def home(self) -> Path | None:
        """Absolute; None if the user has none."""
        try:
            home = Path.home() if self._home is None else Path(self._home)
        except RuntimeError:
            return None
        return home if home.is_absolute() else self.cwd / home

    def absolute(self, path: str) -> Path | None:
        """Return an absolute path; None for ``~`` without a home directory."""
        first, *rest = Path(path).parts or (".",)
        if first == "~":
            return None if self.home is None else self.home.joinpath(*rest)
        # An absolute path must work without a working directory.
        return Path(path) if Path(path).is_absolute() else self.cwd / path


@attrs.frozen
class SearchPath:
    """The distinct directories in order of priority, and a warning for each unknown one."""

    directories: tuple[AgentDirectory, ...]
    skipped: tuple[Problem, ...] = ()


def default_directories(
    bases: BaseDirectories, environ: Mapping[str, str], kind: str = _AGENTS
) -> SearchPath:
    """Return the directories of a project and of its user (spec subagents, search order).

    Outside a repository, the project has only the working directory.
    """
    found: dict[Path, AgentDirectory] = {}
    skipped = []
    for directory in _project_directories(bases.cwd, kind):
        found.setdefault(directory.path, directory)
    for base in _user_directories(environ):
        path = bases.absolute(base)
        if path is None:
            skipped.append(_skipped(base, kind))
        else:
            found.setdefault(path / kind, AgentDirectory(path / kind, "user"))
    return SearchPath(tuple(found.values()), tuple(skipped))


def given_directories(paths: Iterable[str | os.PathLike[str]], bases: BaseDirectories) -> SearchPath:
    """Return a caller's directories, with ``~``, and relative to the cwd."""
    found = dict.fromkeys(_given(checked_path("directories", path), bases) for path in paths)
    return SearchPath(tuple(AgentDirectory(path, "given") for path in found))


def _given(path: str, bases: BaseDirectories) -> Path:
    absolute = bases.absolute(path)
    if absolute is None:
        reason = f"{path!r} needs a home directory, but the user has none: pass home or set HOME"
        raise InvalidOptionError(option="home", reason=reason)
    return absolute


def _skipped(base: str, kind: str) -> Problem:
    message = "the directory is skipped: the user has no home directory, and HOME is not set"
    return Problem(Path(base) / kind, 1, message, "warning")


def _project_directories(cwd: Path, kind: str) -> Iterator[AgentDirectory]:
    for directory in up_to_the_root(cwd):
        for _, name in _CONFIG_DIRS:
            yield AgentDirectory(directory / name / kind, "project")


def _user_directories(environ: Mapping[str, str]) -> Iterator[str]:
    for variable, name in _CONFIG_DIRS:
        yield environ.get(variable) or f"~/{name}"


def up_to_the_root(cwd: Path) -> tuple[Path, ...]:
    """Return a directory and its parents up to the root of its repository, if any."""
    # The real path: a linked directory has the parents of its target.
    nearest = Path(os.path.realpath(cwd))
    upward = (nearest, *nearest.parents)
    for number, directory in enumerate(upward, start=1):
        # In a worktree or a submodule, `.git` is a file.
        if os.path.exists(directory / ".git"):  # noqa: PTH110 - Path.exists raises where a parent cannot be searched
            return upward[:number]
    return (nearest,)
