"""Where agent files are looked for, what comes first first."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Literal

import attrs

from kantan_agents.definitions.problems import Problem
from kantan_agents.errors import InvalidOptionError
from kantan_agents.support.arguments import checked_path

DirectoryScope = Literal["project", "user", "given"]

_HOUSES = (("KODE_CONFIG_DIR", ".kode"), ("CLAUDE_CONFIG_DIR", ".claude"))
_AGENTS = "agents"


@attrs.frozen
class AgentDirectory:
    """A directory that agent files are looked for in, with all below it.

    Attributes:
        path: The directory, absolute. It need not exist.
        scope: ``project`` for a directory between the working directory and the root of its repository,
            ``user`` for one of the user's own, ``given`` for one that the caller named.
    """

    path: Path
    scope: DirectoryScope


class Whereabouts:
    """The working directory and the home, each looked up only when a path needs it.

    Args:
        cwd: The working directory, else that of the process at that moment.
        home: The home, else that of the process' user, who may have none.
    """

    def __init__(
        self, cwd: str | os.PathLike[str] | None = None, home: str | os.PathLike[str] | None = None
    ) -> None:
        self._cwd = cwd
        self._home = home

    @cached_property
    def cwd(self) -> Path:
        """The working directory, absolute.

        Raises:
            InvalidOptionError: E75, it has been deleted, or may not be looked at.
        """
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
        """The home, absolute; None for a user who has none.

        Raises:
            InvalidOptionError: E75, it is relative to a working directory that there is not.
        """
        try:
            home = Path.home() if self._home is None else Path(self._home)
        except RuntimeError:
            return None
        return home if home.is_absolute() else self.cwd / home

    def absolute(self, path: str) -> Path | None:
        """Return a path as an absolute one, None where it is in the home of a user who has none.

        Raises:
            InvalidOptionError: E75, it is relative to a working directory that there is not.
        """
        first, *rest = Path(path).parts or (".",)
        if first == "~":
            return None if self.home is None else self.home.joinpath(*rest)
        # Asked for the working directory only where there is need of it.
        return Path(path) if Path(path).is_absolute() else self.cwd / path


@attrs.frozen
class Places:
    """Where agents are looked for, what comes first first.

    Attributes:
        directories: The directories, whether or not they exist; each one once, where it is met first.
        left_out: What is said of those that nobody can look into.
    """

    directories: tuple[AgentDirectory, ...]
    left_out: tuple[Problem, ...] = ()


def default_directories(here: Whereabouts, environ: Mapping[str, str]) -> Places:
    """Return the directories of a project and of its user (spec subagents, search order).

    Args:
        here: From its working directory up to the root of the repository, the nearest first, and of each
            ``.kode/agents`` before ``.claude/agents``. Outside a repository it stands alone. ``.kode`` and
            ``.claude`` of its home come after the project; without a home they are left out.
        environ: ``KODE_CONFIG_DIR`` and ``CLAUDE_CONFIG_DIR`` in it stand for the user's two directories.

    Raises:
        InvalidOptionError: E75, there is no working directory.
    """
    found: dict[Path, AgentDirectory] = {}
    left_out = []
    for directory in _of_the_project(here.cwd):
        found.setdefault(directory.path, directory)
    for base in _of_the_user(environ):
        path = here.absolute(base)
        if path is None:
            left_out.append(_left_out(base))
        else:
            found.setdefault(path / _AGENTS, AgentDirectory(path / _AGENTS, "user"))
    return Places(tuple(found.values()), tuple(left_out))


def given_directories(paths: Iterable[str | os.PathLike[str]], here: Whereabouts) -> Places:
    """Return the directories a caller named; ``~`` is the home, relative ones are in the working directory.

    Raises:
        InvalidOptionError: E75, a path is relative to a home or a working directory that there is not.
    """
    found = dict.fromkeys(_given(checked_path("directories", path), here) for path in paths)
    return Places(tuple(AgentDirectory(path, "given") for path in found))


def _given(path: str, here: Whereabouts) -> Path:
    absolute = here.absolute(path)
    if absolute is None:
        reason = (
            f"{path!r} is in the home of a user who has none: name a home, set HOME, or name another path"
        )
        raise InvalidOptionError(option="home", reason=reason)
    return absolute


def _left_out(base: str) -> Problem:
    message = "the directory is left out: the user has no home, and HOME is not set"
    return Problem(Path(base) / _AGENTS, 1, message, "warning")


def _of_the_project(cwd: Path) -> Iterator[AgentDirectory]:
    for directory in _up_to_the_root(cwd):
        for _, house in _HOUSES:
            yield AgentDirectory(directory / house / _AGENTS, "project")


def _of_the_user(environ: Mapping[str, str]) -> Iterator[str]:
    for variable, house in _HOUSES:
        yield environ.get(variable) or f"~/{house}"


def _up_to_the_root(cwd: Path) -> tuple[Path, ...]:
    # The real path: what lies above a linked directory is what lies above its target.
    nearest = Path(os.path.realpath(cwd))
    upward = (nearest, *nearest.parents)
    for number, directory in enumerate(upward, start=1):
        # A file in a worktree or a submodule, else a directory.
        if os.path.exists(directory / ".git"):  # noqa: PTH110 - Path.exists raises where a parent cannot be searched
            return upward[:number]
    return (nearest,)
