"""Files of a project that a sandboxed command cannot change, although it may change the project.

Existing files are mounted read-only on top of the project. A missing path cannot be mounted without creating
it, and neither can a link: the supervisor watches these (``unchanged_paths.py``).
"""

from __future__ import annotations

import os
import site
import stat
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import attrs

from kantan_agents.support.data_folder import data_folder_near
from kantan_agents.toolkit.named_files.gitlinks import MOST_LINKS, gitlinks
from kantan_agents.toolkit.named_files.programs import used_by_servers
from kantan_agents.toolkit.named_files.repositories import Repository, repositories, used_by_git
from kantan_agents.toolkit.protected import (
    PROTECTED,
    TRACES,
    also_protected,
    command_folders,
    databases,
    executed_here,
)
from kantan_agents.tools.mcp.configuration.config_directory import config_directory
from kantan_agents.traces.backend import backend_of
from kantan_agents.traces.registry import recorders

_FLUSH_SECONDS = 2.0
_MOST_LINKS = 40
_WILD = frozenset("*?")
_OF_DATABASES = ("", "-wal", "-shm", "-journal", ".key")
_OF_ENVIRONMENTS = ("bin", "lib", "lib64", "include", "pyvenv.cfg", "conda-meta")


@attrs.frozen
class Pinned:
    """Paths that a command cannot change. The last three are relative to the project.

    Something in ``folders`` is read-only, so they must not move. ``absent`` must not be created. Other
    repositories may appear in the folders of ``indexes``.
    """

    folders: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    indexes: tuple[tuple[str, str], ...] = ()

    def beside(self, other: Pinned) -> Pinned:
        """Return the pins for a command that runs while another one has ``other`` pinned.

        A path that the other may replace must not be mounted: it could be a link by then.
        """
        return Pinned(
            tuple(one for one in self.folders if one in (*other.folders, *other.read_only)),
            tuple(one for one in self.read_only if one in other.read_only),
            tuple(dict.fromkeys((*self.absent, *other.absent))),
            tuple(one for one in self.links if one in other.links),
            # Other repositories' configurations are not mounted, so they are checked afterwards, like new
            # ones.
            tuple(one for one in self.indexes if one in other.indexes),
        )

    @property
    def mounted(self) -> list[str]:
        """Paths whose mount disappears with them, without the logs of databases."""
        return [one for one in (*self.folders, *self.read_only) if not one.endswith(_OF_DATABASES[1:4])]

    def mounts(self) -> Iterator[str]:
        """Yield the arguments of bubblewrap that follow those for the project."""
        # A mounted folder cannot be renamed or removed; its content comes after it. Another process may
        # remove a file meanwhile, such as a database.
        for path in self.folders:
            yield from ("--bind-try", path, path)
        for path in self.read_only:
            yield from ("--ro-bind-try", path, path)


NOTHING_PINNED = Pinned()


def find_pinned(root: str, writable: Iterable[str] = ()) -> Pinned:
    """Return the pins of a project. Blocks."""
    finder = _Finder(root, tuple(writable))
    for one in (*_executed(root), *filter(None, [data_folder_near(root)])):
        finder.pin(one, always=True)
    known = [one for folder in _folders(root) for one in repositories(folder)]
    for one in _named(root, known):
        finder.pin(one)
    return attrs.evolve(finder.found(), indexes=tuple(_indexes(root, known)))


def runs_from(root: str) -> bool:
    """Return whether the project is in a folder from which this process runs code."""
    code = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib", "scripts"))
    places = (*filter(None, code), str(Path(__file__).parents[2]))
    return any(Path(root).is_relative_to(os.path.realpath(place)) for place in places)


class _Finder:
    def __init__(self, root: str, writable: tuple[str, ...]) -> None:
        self._root = root
        self._writable = writable
        self._folders: dict[str, None] = {}
        self._read_only: dict[str, None] = {}
        self._absent: dict[str, None] = {}
        self._links: dict[str, str] = {}

    def pin(self, path: str, *, always: bool = False, hops: int = 0) -> None:
        """Pin a path below the root, and its targets."""
        if not _is_below(path, self._root) or hops > _MOST_LINKS:
            return
        if not always and any(path == one or _is_below(path, one) for one in self._writable):
            return
        names = os.path.relpath(path, self._root).split(os.sep)
        place = self._root
        above: list[str] = []
        for count, name in enumerate(names, start=1):
            place = f"{place}/{name}"
            try:
                mode = os.lstat(place).st_mode
            except OSError:
                self._absent[os.path.relpath(path, self._root)] = None
                return
            if stat.S_ISLNK(mode):
                target = os.readlink(place)
                self._links[os.path.relpath(place, self._root)] = target
                self._folders |= dict.fromkeys(above)
                rest = names[count:]
                led = os.path.normpath(os.path.join(os.path.dirname(place), target, *rest))
                for one in dict.fromkeys((led, os.path.realpath(path))):
                    self.pin(one, always=always, hops=hops + 1)
                return
            if count < len(names):
                if not stat.S_ISDIR(mode):
                    return
                above.append(place)
        self._folders |= dict.fromkeys(above)
        self._read_only[path] = None

    def found(self) -> Pinned:
        kept = {one for one in self._read_only if not self._is_inside(one, self._read_only)}
        folders = (one for one in self._folders if one not in kept and not self._is_inside(one, kept))
        return Pinned(
            tuple(sorted(folders)), tuple(sorted(kept)), tuple(self._absent), tuple(self._links.items())
        )

    def _is_inside(self, path: str, others: Iterable[str]) -> bool:
        return any(
            str(parent) in others for parent in Path(path).parents if _is_below(str(parent), self._root)
        )


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(f"{folder}/")


def _executed(root: str) -> Iterator[str]:
    user = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    raw = (sys.prefix, sys.exec_prefix, sys.base_prefix, os.path.dirname(sys.executable or "/"), *user)
    # Also its name in the project, which may be a link.
    named = (os.path.join(os.path.realpath(os.path.dirname(one)), os.path.basename(one)) for one in raw)
    for place in dict.fromkeys((*named, *executed_here(), *also_protected())):
        yield place
        if place == root:
            yield from (f"{root}/{name}" for name in _OF_ENVIRONMENTS if os.path.lexists(f"{root}/{name}"))
    own = config_directory()
    if own is not None:
        yield os.path.realpath(own)
    for recorder in recorders():
        file = backend_of(recorder.path).file
        base = "" if file is None else os.path.realpath(file)
        if _is_below(base, root) and not os.path.exists(f"{base}-wal"):
            recorder.force_flush(_FLUSH_SECONDS)
    for base in databases():
        # This process creates the missing ones while the command runs.
        yield from (f"{base}{ending}" for ending in _OF_DATABASES if os.path.lexists(f"{base}{ending}"))


def _named(root: str, known: Iterable[Repository]) -> Iterator[str]:
    # Programs that are started by their names are found there.
    yield from command_folders()
    names = [one for one in PROTECTED if one.in_sandbox and not _WILD & set(one.pattern)]
    for folder in _folders(root):
        for one in names:
            path = f"{folder}/{one.pattern}"
            # An outside process may create missing database files while a command runs.
            if one.reason != TRACES or os.path.lexists(path):
                yield path
        with suppress(OSError):
            yield from (entry.path for entry in os.scandir(folder) if entry.name.endswith(".pth"))
        yield from used_by_servers(folder)
    for repository in known:
        yield from used_by_git(repository)


def _indexes(root: str, known: Sequence[Repository]) -> Iterator[tuple[str, str]]:
    for one in known if len(known) <= MOST_LINKS else ():
        is_inside = f"{one.folder}/".startswith(f"{root}/") and _is_below(one.index, root)
        if is_inside and gitlinks(one.index) is not None:
            yield os.path.relpath(one.folder, root), os.path.relpath(one.index, root)


def _folders(root: str) -> list[str]:
    """The configuration applies to all folders from the project up to the working directory."""
    try:
        working = os.path.realpath(os.getcwd())
    except OSError:  # it was deleted
        working = root
    below = (str(one) for one in Path(working, "x").parents if _is_below(str(one), root))
    return [root, *below]
