"""Lists the agent files below some directories, and what to watch to know that the list still holds."""

from __future__ import annotations

import os
from collections.abc import Iterable

import attrs

from kantan_agents.definitions.loading.directories import AgentDirectory, DirectoryScope
from kantan_agents.definitions.loading.file_problems import file_problem
from kantan_agents.definitions.loading.signature import ABSENT, Seen, clock_ns, identity_of, is_racy, seen_at
from kantan_agents.definitions.problems import Problem

_SUFFIX = ".md"


@attrs.frozen
class FoundFile:
    """A path that ends as agent files do, and the scope of the directory it was found in."""

    path: str
    scope: DirectoryScope


@attrs.frozen
class Listing:
    """What is in some directories, what came first first.

    Attributes:
        files: The files; those of one tree by the parts of their paths.
        problems: Directories that cannot be read.
        watched: Every place whose change changes the list, as it was before it was listed.
        racy: Whether a place was changed so shortly before that a change after it might not be seen.
    """

    files: tuple[FoundFile, ...]
    problems: tuple[Problem, ...]
    watched: tuple[tuple[str, Seen], ...]
    racy: bool

    def holds(self) -> bool:
        """Whether listing again would give the same. It costs a ``stat`` for each place that is watched."""
        return not self.racy and all(seen_at(path) == seen for path, seen in self.watched)


def listed(directories: Iterable[AgentDirectory]) -> Listing:
    """List the agent files in and below some directories.

    Links are followed; a directory that is reached a second time, in a loop or by another way, counts once.
    Names that begin with a dot are left out: they are the leftovers and lock files of editors.
    """
    walk = _Walk()
    for directory in directories:
        walk.tree(str(directory.path), directory.scope)
    return Listing(tuple(walk.files), tuple(walk.problems), tuple(walk.watched), walk.racy)


@attrs.define
class _Walk:
    files: list[FoundFile] = attrs.field(factory=list)
    problems: list[Problem] = attrs.field(factory=list)
    watched: list[tuple[str, Seen]] = attrs.field(factory=list)
    racy: bool = False
    _entered: set[tuple[int, int]] = attrs.field(factory=set)

    def tree(self, root: str, scope: DirectoryScope) -> None:
        # A stack of our own: a tree may be deeper than Python's.
        pending = [(root, True)]
        while pending:
            path, is_directory = pending.pop()
            if is_directory:
                pending.extend(reversed(self._within(path)))
            else:
                self.files.append(FoundFile(path, scope))

    def _within(self, directory: str) -> list[tuple[str, bool]]:
        """Return what to look at in a directory: paths, and which of them are directories."""
        now = clock_ns()
        seen = seen_at(directory)
        self.watched.append((directory, seen))
        if isinstance(seen, int):
            if seen not in ABSENT:
                self._cannot_be_read(directory, os.strerror(seen))
            return []
        if identity_of(seen) in self._entered:
            return []
        self._entered.add(identity_of(seen))
        self.racy = self.racy or is_racy(seen, now)
        try:
            with os.scandir(directory) as entries:
                return self._kinds(sorted(entries, key=lambda entry: entry.name))
        except FileNotFoundError:
            return []
        except OSError as error:
            self._cannot_be_read(directory, error.strerror or str(error))
            return []

    def _kinds(self, entries: Iterable[os.DirEntry[str]]) -> list[tuple[str, bool]]:
        found = []
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if _is_directory(entry):
                found.append((entry.path, True))
                continue
            if entry.is_symlink() and isinstance(seen := seen_at(entry.path), int):
                # What it points to may appear, which does not touch the directory the link is in.
                self.watched.append((entry.path, seen))
            if entry.name.lower().endswith(_SUFFIX):
                found.append((entry.path, False))
        return found

    def _cannot_be_read(self, directory: str, reason: str) -> None:
        self.problems.append(file_problem(directory, f"the directory cannot be read: {reason}"))


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        # A link to itself, or one into a place that cannot be searched: who reads it says so.
        return False
