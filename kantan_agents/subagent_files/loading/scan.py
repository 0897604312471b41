"""Lists Markdown files below directories."""

from __future__ import annotations

import errno
import math
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import attrs

from kantan_agents.subagent_files.loading.directories import AgentDirectory, DirectoryScope
from kantan_agents.subagent_files.problems import Problem, unreadable

Signature = tuple[int, int, int, int, int]
"""Modification and change time in nanoseconds, size, inode, device."""

PathState = Signature | int
"""A signature, or the ``errno`` of the failed ``stat``."""

ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR})

_SECOND = 1_000_000_000
_TICK = 50_000_000
_COARSE_TICK = 2 * _SECOND

_NOT_FOLLOWED: Final = "is a link, and links are not followed; name its target as a directory of its own"

Entries = list[os.DirEntry[str]]
"""Sorted by name, without dotfiles."""

Chosen = Iterable[tuple[os.DirEntry[str], bool]]
"""In visiting order, each with whether it is a directory to search."""


def clock_ns() -> int:
    """Return the clock of file times, in nanoseconds."""
    return time.time_ns()


def signature_of(status: os.stat_result) -> Signature:
    """Return the signature in a ``stat`` result."""
    return (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev)


def signature_at(path: str) -> PathState:
    """Return the state of a path for the cost of one ``stat``; follows links."""
    try:
        return signature_of(os.stat(path))  # noqa: PTH116 - a Path would double the cost
    except OSError as error:
        return error.errno or errno.EIO
    except ValueError:
        return errno.EINVAL


def identity_of(signature: Signature) -> tuple[int, int]:
    """Return the part that is equal for two paths to one file."""
    return signature[3:]


def is_racy(signature: Signature, now: int) -> bool:
    """Return whether a change right after ``now`` could leave this signature the same.

    File times advance in ticks of some milliseconds, on old file systems of two seconds. ``now`` is from
    before the signature.
    """
    modified, changed, *_ = signature
    tick = _TICK if modified % _SECOND or changed % _SECOND else _COARSE_TICK
    # A change time in the future: the file system's clock differs from ours. Programs can set the
    # modification time freely; one in the far future is harmless, because the next write changes it.
    return changed > now - tick or abs(now - modified) < tick


@attrs.frozen
class Search:
    """Selects files below a directory; more or deeper directories are errors.

    Without ``follows_links``, links are warnings, except for the directory that the caller named.
    """

    choose: Callable[[Entries], Chosen]
    follows_links: bool = False
    deepest: float = 5
    most: float = 10_000


def is_directory(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a directory or a link to one."""
    try:
        return entry.is_dir()
    except OSError:
        # A link to itself or into a directory without access. Reading it as a file reports the error.
        return False


def is_markdown(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is named like Markdown."""
    return entry.name.lower().endswith(".md")


def _markdown_files(entries: Entries) -> Chosen:
    return [(entry, inner) for entry in entries if (inner := is_directory(entry)) or is_markdown(entry)]


SUBAGENT_FILES: Final = Search(_markdown_files, follows_links=True, deepest=math.inf, most=math.inf)


@attrs.frozen
class FoundFile:
    """The path of a file, and the scope of its directory."""

    path: str
    scope: DirectoryScope


@attrs.frozen
class Listing:
    """The files found in directories, in order of priority.

    ``watched`` has states from before the listing. If ``racy``, a further change might go unnoticed.
    """

    files: tuple[FoundFile, ...]
    problems: tuple[Problem, ...]
    watched: tuple[tuple[str, PathState], ...]
    racy: bool

    @property
    def has_errors(self) -> bool:
        """Whether a directory could not be read; it can become readable without a change."""
        return any(problem.severity == "error" for problem in self.problems)

    def is_current(self) -> bool:
        """Return whether a new listing would be the same; one ``stat`` per path."""
        return not self.racy and all(signature_at(path) == state for path, state in self.watched)


def list_files(directories: Iterable[AgentDirectory], search: Search = SUBAGENT_FILES) -> Listing:
    """List the files that count in directories and their subdirectories, each once.

    Dotfiles are skipped: editors use them for temporary and lock files.
    """
    walk = _Walk(search)
    for directory in directories:
        walk.add_tree(str(directory.path), directory.scope)
    return Listing(tuple(walk.files), tuple(walk.problems), tuple(walk.watched), walk.racy)


@attrs.define
class _Walk:
    search: Search
    files: list[FoundFile] = attrs.field(factory=list)
    problems: list[Problem] = attrs.field(factory=list)
    watched: list[tuple[str, PathState]] = attrs.field(factory=list)
    racy: bool = False
    _entered: set[tuple[int, int]] = attrs.field(factory=set)

    def add_tree(self, named: str, scope: DirectoryScope) -> None:
        root = named
        if not self.search.follows_links:
            # The caller named this directory, so it may be a link.
            self.watched.append((named, signature_at(named)))
            root = os.path.realpath(named)
        # An explicit stack: a tree may be deeper than Python's recursion limit.
        pending = [(root, True, 0)]
        while pending:
            path, is_inner, depth = pending.pop()
            if not is_inner:
                self.files.append(FoundFile(path, scope))
                continue
            if len(self._entered) >= self.search.most:
                self.problems.append(unreadable(root, f"there are more than {self.search.most} directories"))
                return
            found = self._list(path)
            if depth == self.search.deepest and any(inner for _, inner in found):
                self.problems.append(unreadable(path, "its directories are too deep to be searched"))
                found = [(file, inner) for file, inner in found if not inner]
            pending.extend((one, inner, depth + 1) for one, inner in reversed(found))

    def _list(self, directory: str) -> list[tuple[str, bool]]:
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
                listed = sorted(
                    (entry for entry in entries if not entry.name.startswith(".")), key=lambda one: one.name
                )
                return self._classify(listed)
        except FileNotFoundError:
            return []
        except OSError as error:
            self._add_problem(directory, error.strerror or str(error))
            return []

    def _classify(self, entries: Entries) -> list[tuple[str, bool]]:
        for entry in entries:
            if entry.is_symlink() and isinstance(state := signature_at(entry.path), int):
                # The target may appear later without a change of the link's directory.
                self.watched.append((entry.path, state))
        chosen = list(self.search.choose(entries))
        if self.search.follows_links:
            return [(entry.path, inner) for entry, inner in chosen]
        links = dict.fromkeys(entry.path for entry, _ in chosen if entry.is_symlink())
        self.problems += [Problem(Path(path), 1, _NOT_FOLLOWED, "warning") for path in links]
        return [(entry.path, inner) for entry, inner in chosen if entry.path not in links]

    def _add_problem(self, directory: str, reason: str) -> None:
        self.problems.append(unreadable(directory, f"the directory cannot be read: {reason}"))
