"""Lists the subagent files below directories, and the paths to watch for changes of the list."""

from __future__ import annotations

import os
from collections.abc import Iterable

import attrs

from kantan_agents.subagent_files.loading.directories import AgentDirectory, DirectoryScope
from kantan_agents.subagent_files.loading.signature import (
    ABSENT,
    PathState,
    clock_ns,
    identity_of,
    is_racy,
    signature_at,
)
from kantan_agents.subagent_files.problems import Problem, unreadable

_SUFFIX = ".md"


@attrs.frozen
class FoundFile:
    """A path with the suffix of subagent files, and the scope of its directory."""

    path: str
    scope: DirectoryScope


@attrs.frozen
class Listing:
    """The files found in directories, in order of priority.

    Attributes:
        files: The files; within one directory tree sorted by path.
        problems: Directories that cannot be read.
        watched: Every path that affects the list, with its state from before it was listed.
        racy: Whether a path changed so recently that a further change might go unnoticed.
    """

    files: tuple[FoundFile, ...]
    problems: tuple[Problem, ...]
    watched: tuple[tuple[str, PathState], ...]
    racy: bool

    def is_current(self) -> bool:
        """Return whether a new listing would be the same. Costs one ``stat`` for each watched path."""
        return not self.racy and all(signature_at(path) == state for path, state in self.watched)


def list_files(directories: Iterable[AgentDirectory]) -> Listing:
    """List the subagent files in directories and their subdirectories.

    Links are followed. A directory that is reached twice, by a loop or another path, is listed once. Names
    that begin with a dot are skipped, because editors use them for temporary and lock files.
    """
    walk = _Walk()
    for directory in directories:
        walk.add_tree(str(directory.path), directory.scope)
    return Listing(tuple(walk.files), tuple(walk.problems), tuple(walk.watched), walk.racy)


@attrs.define
class _Walk:
    files: list[FoundFile] = attrs.field(factory=list)
    problems: list[Problem] = attrs.field(factory=list)
    watched: list[tuple[str, PathState]] = attrs.field(factory=list)
    racy: bool = False
    _entered: set[tuple[int, int]] = attrs.field(factory=set)

    def add_tree(self, root: str, scope: DirectoryScope) -> None:
        # An explicit stack, because a tree may be deeper than Python's recursion limit.
        pending = [(root, True)]
        while pending:
            path, is_directory = pending.pop()
            if is_directory:
                pending.extend(reversed(self._list(path)))
            else:
                self.files.append(FoundFile(path, scope))

    def _list(self, directory: str) -> list[tuple[str, bool]]:
        """Return the relevant paths in a directory, each with whether it is a directory."""
        now = clock_ns()
        state = signature_at(directory)
        self.watched.append((directory, state))
        if isinstance(state, int):
            if state not in ABSENT:
                self._add_problem(directory, os.strerror(state))
            return []
        if identity_of(state) in self._entered:
            return []
        self._entered.add(identity_of(state))
        self.racy = self.racy or is_racy(state, now)
        try:
            with os.scandir(directory) as entries:
                return self._classify(sorted(entries, key=lambda entry: entry.name))
        except FileNotFoundError:
            return []
        except OSError as error:
            self._add_problem(directory, error.strerror or str(error))
            return []

    def _classify(self, entries: Iterable[os.DirEntry[str]]) -> list[tuple[str, bool]]:
        found = []
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if _is_directory(entry):
                found.append((entry.path, True))
                continue
            if entry.is_symlink() and isinstance(state := signature_at(entry.path), int):
                # The target may appear later, which does not change the directory of the link.
                self.watched.append((entry.path, state))
            if entry.name.lower().endswith(_SUFFIX):
                found.append((entry.path, False))
        return found

    def _add_problem(self, directory: str, reason: str) -> None:
        self.problems.append(unreadable(directory, f"the directory cannot be read: {reason}"))


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        # A link to itself or into a directory without access. Reading it as a file reports the error.
        return False
