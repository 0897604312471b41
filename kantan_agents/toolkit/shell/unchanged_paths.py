"""Paths that a sandboxed command must not change, seen from outside.

If someone replaces a file or folder that is mounted read-only, the system removes the mount, and the command
can write there.

Runs in the process of ``supervisor.py``, with the standard library only.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from kantan_agents.toolkit.named_files.gitlinks import MOST_LINKS, content_of, gitlinks

_ASIDE = ".set-aside"
_MOST_NAMES = 1000
_MOST_BYTES = 10_000
_MOST_HELD = 200
_OWNER_MAY = 0o700
_SHARE_OF_TIME = 0.05
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_BARE = ("HEAD", "objects", "refs")
# `git init` and the first commit write these. Any other key may do harm.
_HARMLESS = re.compile(
    r"\s*(\[(core|user|init|branch [^\]]*)\]"
    r"|(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks)\s*=.*"
    r"|(name|email)\s*=[^!`$\\]*|(defaultbranch|remote|merge)\s*=\s*[\w./-]+)?\s*",
    re.IGNORECASE,
)


class UnchangedPaths:
    """Paths of a project that a command must not create or replace.

    All but ``mounted`` are relative to ``root``.
    """

    def __init__(self, plan: Mapping[str, Any]) -> None:
        self._root: str = plan.get("root", "")
        self._absent: list[str] = plan.get("absent", [])
        self._links: list[list[str]] = plan.get("links", [])
        self._indexes: list[list[str]] = plan.get("indexes", [])
        self._read: dict[str, tuple[Any, list[str] | None]] = {}
        self._due = 0.0
        self._is_repository = not self._root or self._is_bare()
        self.moved: list[list[str]] = []
        mounted: list[str] = plan.get("mounted", [])
        # Held open, so that a new file cannot get the inode number of the old one.
        self._held = [_hold(path) for path in mounted[:_MOST_HELD]]
        self._mounted = {path: _identity(path) for path in mounted}

    def is_broken(self) -> bool:
        """Return whether a path was created, or a link changed."""
        return next(self._offending(), None) is not None

    def replaced(self) -> list[str]:
        """Return the mounted paths that were replaced or removed."""
        return [path for path, before in self._mounted.items() if _identity(path) != before]

    def restore(self) -> None:
        """Rename created paths, and restore links; ``moved`` has the names."""
        self._read.clear()
        for path, target in list(self._offending()):
            self.moved.append([path, self._set_aside(path) or ""])
            if target is not None:
                with suppress(OSError), self._opened(path) as (folder, name):
                    os.symlink(target, name, dir_fd=folder)

    def _offending(self) -> Iterator[tuple[str, str | None]]:
        for path in self._absent:
            found = self._found(path)
            if found is not None:
                yield found, None
        for path, target in self._links:
            try:
                now = os.readlink(f"{self._root}/{path}")
            except OSError:
                now = None
            if now != target:
                yield path, target
        if not self._is_repository and self._is_bare():
            yield "HEAD", None
        yield from ((path, None) for path in self._new_repositories())

    def _new_repositories(self) -> Iterator[str]:
        """New parts of known repositories that would make git run a program."""
        known = {folder for folder, _ in self._indexes}
        most = max(MOST_LINKS, len(known))
        waiting = list(self._indexes)
        while waiting:
            folder, index = waiting.pop()
            links = self._links_in(index)
            found = {os.path.normpath(f"{folder}/{link}") for link in links or ()} - known
            known |= found
            if links is None or len(known) > most:
                yield index
                continue
            for path in found:
                if self._names_no_program(f"{path}/.git"):
                    waiting.append([path, f"{path}/.git/index"])
                else:
                    yield f"{path}/.git"

    def _links_in(self, index: str) -> list[str] | None:
        full = f"{self._root}/{index}"
        try:
            found = os.stat(full)
        except OSError:
            return []
        state = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        known = self._read.get(index)
        if known is None or (known[0] != state and time.monotonic() >= self._due):
            started = time.monotonic()
            known = self._read[index] = state, gitlinks(full)
            # A command that writes a large index all the time must not use up this process.
            self._due = time.monotonic() + (time.monotonic() - started) / _SHARE_OF_TIME
        return known[1]

    def _names_no_program(self, git: str) -> bool:
        try:
            with self._opened(git) as (folder, name):
                mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        except OSError:
            return True  # nothing is there, or a link leads there, which git does not follow
        if not stat.S_ISDIR(mode):
            return False
        parts = ((f"{git}/{name}", self._mode(f"{git}/{name}")) for name in ("config", "hooks"))
        has_more = any(self._mode(f"{git}/{name}") for name in ("commondir", "config.worktree"))
        return not has_more and all(not mode or self._is_harmless(path, mode) for path, mode in parts)

    def _mode(self, path: str) -> int:
        try:
            return os.lstat(f"{self._root}/{path}").st_mode
        except OSError:
            return 0

    def _is_bare(self) -> bool:
        # For git, a folder with these is a repository, even without `.git`.
        return all(os.path.lexists(f"{self._root}/{name}") for name in _BARE)

    def _found(self, path: str) -> str | None:
        place = ""
        names = path.split("/")
        for count, name in enumerate(names, start=1):
            place = f"{place}/{name}" if place else name
            try:
                mode = os.lstat(f"{self._root}/{place}").st_mode
            except OSError:
                return None
            if count == len(names):
                return None if self._is_harmless(place, mode) else place
            if stat.S_ISLNK(mode) and [place] not in [link[:1] for link in self._links]:
                return place
            if name == ".git" and not stat.S_ISDIR(mode):
                return place
        return None

    def _is_harmless(self, path: str, mode: int) -> bool:
        full = f"{self._root}/{path}"
        try:
            if f"/{path}".endswith("/.git/config") and stat.S_ISREG(mode):
                text = content_of(full, _MOST_BYTES + 1).decode()
                return len(text) <= _MOST_BYTES and all(map(_HARMLESS.fullmatch, text.splitlines()))
            if f"/{path}".endswith("/.git/hooks") and stat.S_ISDIR(mode):
                names = os.listdir(full)
                return len(names) <= _MOST_NAMES and all(name.endswith(".sample") for name in names)
        except (OSError, ValueError):
            return False
        return False

    def _set_aside(self, path: str) -> str | None:
        endings = ["", *(f"-{number}" for number in range(2, _MOST_NAMES)), f"-{os.urandom(8).hex()}"]
        with suppress(OSError), self._opened(path) as (folder, name):
            os.stat(name, dir_fd=folder, follow_symlinks=False)
            mode = stat.S_IMODE(os.fstat(folder).st_mode)
            if mode & _OWNER_MAY != _OWNER_MAY:  # a command may have taken this right
                os.chmod(f"/proc/self/fd/{folder}", mode | _OWNER_MAY)
            taken = set(os.listdir(f"/proc/self/fd/{folder}"))
            ending = next(one for one in endings if f"{name}{_ASIDE}{one}" not in taken)
            os.rename(name, f"{name}{_ASIDE}{ending}", src_dir_fd=folder, dst_dir_fd=folder)
            return f"{path}{_ASIDE}{ending}"
        return None

    @contextmanager
    def _opened(self, path: str) -> Iterator[tuple[int, str]]:
        """Opens no link, which another command could have put there."""
        *names, last = path.split("/")
        folder = os.open(self._root, _FOLDER)
        try:
            for name in names:
                outer, folder = folder, os.open(name, _FOLDER, dir_fd=folder)
                os.close(outer)
            yield folder, last
        finally:
            os.close(folder)


def _hold(path: str) -> int | None:
    with suppress(OSError):
        return os.open(path, getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW)
    return None


def _identity(path: str) -> tuple[int, int] | None:
    with suppress(OSError):
        found = os.lstat(path)
        return found.st_dev, found.st_ino
    return None
