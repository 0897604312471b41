"""Lists the files of skills and commands below directories, without following links."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import attrs

from kantan_agents.subagent_files.loading.directories import AgentDirectory, DirectoryScope
from kantan_agents.subagent_files.loading.scan import FoundFile, Listing
from kantan_agents.subagent_files.loading.signature import ABSENT, PathState, clock_ns, is_racy, signature_at
from kantan_agents.subagent_files.problems import Problem, unreadable

SKILL_FILE: Final = "SKILL.md"
_DEEPEST: Final = 5
_MOST: Final = 10_000
_NOT_FOLLOWED: Final = "is a link, and links are not followed; name its target as a directory of its own"

Choose = Callable[[list[os.DirEntry[str]]], tuple[list[str], bool]]
"""Takes the entries of a directory; returns the paths of the files, and whether to enter its directories."""


def list_skills(directories: Iterable[AgentDirectory]) -> Listing:
    """List the ``SKILL.md`` files in directories.

    A directory with such a file is a skill, and what is below belongs to it. Other directories group skills.
    """

    def choose(entries: list[os.DirEntry[str]]) -> tuple[list[str], bool]:
        found = [entry.path for entry in entries if entry.name.lower() == SKILL_FILE.lower()]
        return found[:1], not found

    return _listed(directories, choose)


def list_commands(directories: Iterable[AgentDirectory]) -> Listing:
    """List the Markdown files in directories and their subdirectories."""

    def choose(entries: list[os.DirEntry[str]]) -> tuple[list[str], bool]:
        return [entry.path for entry in entries if entry.name.lower().endswith(".md")], True

    return _listed(directories, choose)


def _listed(directories: Iterable[AgentDirectory], choose: Choose) -> Listing:
    walk = _Walk(choose)
    for directory in directories:
        # The directory itself may be a link: the caller who named it decides what it leads to.
        walk.enter(os.path.realpath(directory.path), directory.scope)
    return Listing(tuple(walk.files), tuple(walk.problems), tuple(walk.watched), walk.racy)


@attrs.define
class _Walk:
    choose: Choose
    files: list[FoundFile] = attrs.field(factory=list)
    problems: list[Problem] = attrs.field(factory=list)
    watched: list[tuple[str, PathState]] = attrs.field(factory=list)
    racy: bool = False
    _entered: set[str] = attrs.field(factory=set)

    def enter(self, root: str, scope: DirectoryScope) -> None:
        """Add the files below a directory."""
        pending = [(root, 0)]
        while pending:
            path, depth = pending.pop()
            if path in self._entered:
                continue
            if len(self._entered) >= _MOST:
                self.problems.append(unreadable(root, f"there are more than {_MOST} directories"))
                return
            self._entered.add(path)
            inner = self._list(path, scope)
            if inner and depth == _DEEPEST:
                self.problems.append(unreadable(path, "its directories are too deep to be searched"))
            elif inner:
                pending.extend((one, depth + 1) for one in reversed(inner))

    def _list(self, directory: str, scope: DirectoryScope) -> list[str]:
        """Add the files of one directory; return its directories to enter."""
        now = clock_ns()
        state = signature_at(directory)
        self.watched.append((directory, state))
        if isinstance(state, int):
            if state not in ABSENT:
                self._cannot_be_read(directory, os.strerror(state))
            return []
        self.racy = self.racy or is_racy(state, now)
        try:
            with os.scandir(directory) as listed:
                entries = sorted(
                    (entry for entry in listed if not entry.name.startswith(".")), key=lambda one: one.name
                )
        except OSError as error:
            self._cannot_be_read(directory, error.strerror or str(error))
            return []
        files, enters = self.choose(entries)
        self.files += [FoundFile(path, scope) for path in files if not os.path.islink(path)]  # noqa: PTH114 - str
        links = [entry.path for entry in entries if entry.is_symlink() and (enters or entry.path in files)]
        # A link to any other file belongs to somebody else.
        links = [path for path in links if path in files or os.path.isdir(path)]  # noqa: PTH112 - str
        self.problems += [Problem(Path(path), 1, _NOT_FOLLOWED, "warning") for path in links]
        return [entry.path for entry in entries if enters and entry.is_dir(follow_symlinks=False)]

    def _cannot_be_read(self, directory: str, reason: str) -> None:
        self.problems.append(unreadable(directory, f"the directory cannot be read: {reason}"))
