"""The files that the tools have read."""

from __future__ import annotations

import os
from threading import Lock

from cachetools import LRUCache

State = tuple[int, ...]
"""Differs after a file was changed or replaced."""

_MOST = 10_000


def state_of(found: os.stat_result) -> State:
    """Return the state of a file."""
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


class KnownFiles:
    """The most recently used files of a toolkit."""

    def __init__(self) -> None:
        self._states: LRUCache[tuple[str, ...], State] = LRUCache(_MOST)
        self._lock = Lock()

    def note(self, parts: tuple[str, ...], found: os.stat_result) -> None:
        """Record the state of a file."""
        with self._lock:
            self._states[parts] = state_of(found)

    def state(self, parts: tuple[str, ...]) -> State | None:
        """Return the last recorded state, or None."""
        with self._lock:
            return self._states.get(parts)
