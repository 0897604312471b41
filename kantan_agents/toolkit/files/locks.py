"""One lock for each file that is being changed, so that two edits at once do not lose one another."""

from __future__ import annotations

from threading import Lock
from weakref import WeakValueDictionary


class FileLock:
    """``with lock_of(path):`` - held while one file is read, changed and written."""

    def __init__(self) -> None:
        self._lock = Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


_locks: WeakValueDictionary[str, FileLock] = WeakValueDictionary()
_guard = Lock()


def lock_of(path: str) -> FileLock:
    """Return the lock of a file, the same for every toolkit of the process.

    Args:
        path: Its absolute path.
    """
    with _guard:
        lock = _locks.get(path)
        if lock is None:
            lock = _locks[path] = FileLock()
        return lock
