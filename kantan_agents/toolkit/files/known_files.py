"""``KnownFiles``: which files were read with the tools, and how they were then."""

from __future__ import annotations

import os
from threading import Lock

from cachetools import LRUCache

State = tuple[int, ...]
"""What changes if a file is changed or replaced."""

_MOST = 10_000


def state_of(found: os.stat_result) -> State:
    """Return the state of a file."""
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


class KnownFiles:
    """The files that a toolkit has read or written, the ones used last."""

    def __init__(self) -> None:
        self._states: LRUCache[tuple[str, ...], State] = LRUCache(_MOST)
        self._lock = Lock()

    def note(self, parts: tuple[str, ...], found: os.stat_result) -> None:
        """Note the state in which a file was read or written."""
        with self._lock:
            self._states[parts] = state_of(found)

    def state(self, parts: tuple[str, ...]) -> State | None:
        """Return the state in which a file was read or written last; None if it was not."""
        with self._lock:
            return self._states.get(parts)
