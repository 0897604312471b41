"""What a command in the sandbox must leave as it is, seen from outside.

That is paths that must not be created, and mounts that must stay: if somebody replaces a file or folder that
is mounted read-only for the command, the system removes the mount, and the command can write there.

Runs in the process of ``supervisor.py``, with the standard library only.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

_ASIDE = ".set-aside"
_MOST_NAMES = 1000
_MOST_BYTES = 10_000
_MOST_HELD = 200
_BARE = ("HEAD", "objects", "refs")
# What `git init` and the first commit write there. No other key of git's is taken to be harmless.
_HARMLESS = re.compile(
    r"\s*(\[(core|user|init|branch [^\]]*)\]"
    r"|(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks)\s*=.*"
    r"|(name|email)\s*=[^!`$\\]*|(defaultbranch|remote|merge)\s*=\s*[\w./-]+)?\s*",
    re.IGNORECASE,
)


class Kept:
    """Paths of a project that a command must not create or replace.

    Args:
        plan: ``root``, and relative to it ``absent`` and ``links``; ``mounted``, absolute paths; empty if
            there is nothing to look at.
    """

    def __init__(self, plan: Mapping[str, Any]) -> None:
        self._root: str = plan.get("root", "")
        self._absent: list[str] = plan.get("absent", [])
        self._links: list[list[str]] = plan.get("links", [])
        self._is_repository = not self._root or self._is_bare()
        self.moved: list[list[str]] = []
        mounted: list[str] = plan.get("mounted", [])
        # Held open, so that a new file cannot get the number of the old one.
        self._held = [_hold(path) for path in mounted[:_MOST_HELD]]
        self._mounted = {path: _identity(path) for path in mounted}

    def is_broken(self) -> bool:
        """Return whether something was created, or a link is not as it was."""
        return next(self._offending(), None) is not None

    def replaced(self) -> list[str]:
        """Return the mounted paths that somebody has replaced or removed."""
        return [path for path, before in self._mounted.items() if _identity(path) != before]

    def restore(self) -> None:
        """Rename what was created, and put links back; ``moved`` has the old and the new names."""
        for path, target in list(self._offending()):
            self.moved.append([path, self._set_aside(path) or ""])
            if target is not None:
                with suppress(OSError):
                    os.symlink(target, f"{self._root}/{path}")

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

    def _is_bare(self) -> bool:
        # A folder with these is a repository for git, also without `.git`.
        return all(os.path.lexists(f"{self._root}/{name}") for name in _BARE)

    def _found(self, path: str) -> str | None:
        """Return what is there now of a path that did not exist: itself, or a link on the way to it."""
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
        """Return whether it is what a new repository has."""
        full = f"{self._root}/{path}"
        try:
            if path == ".git/config" and stat.S_ISREG(mode):
                with open(full, encoding="utf-8") as file:
                    text = file.read(_MOST_BYTES + 1)
                return len(text) <= _MOST_BYTES and all(map(_HARMLESS.fullmatch, text.splitlines()))
            if path == ".git/hooks" and stat.S_ISDIR(mode):
                names = os.listdir(full)
                return len(names) <= _MOST_NAMES and all(name.endswith(".sample") for name in names)
        except (OSError, ValueError):
            return False
        return False

    def _set_aside(self, path: str) -> str | None:
        full = f"{self._root}/{path}"
        if not os.path.lexists(full):
            return None
        for number in range(1, _MOST_NAMES):
            moved = f"{path}{_ASIDE}-{number}" if number > 1 else f"{path}{_ASIDE}"
            if not os.path.lexists(f"{self._root}/{moved}"):
                with suppress(OSError):
                    os.rename(full, f"{self._root}/{moved}")
                    return moved
        return None


def _hold(path: str) -> int | None:
    with suppress(OSError):
        return os.open(path, getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW)
    return None


def _identity(path: str) -> tuple[int, int] | None:
    with suppress(OSError):
        found = os.lstat(path)
        return found.st_dev, found.st_ino
    return None
