"""Opens the folder of a file, locked against other calls of this process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from weakref import WeakValueDictionary

from kantan_agents.errors import FileNotUsableError
from kantan_agents.support.noted_changes import changes_noted
from kantan_agents.toolkit.files.names import shown_path
from kantan_agents.toolkit.files.opening import Parts, open_folder, opened_root
from kantan_agents.toolkit.files.root import Root

_locks: WeakValueDictionary[str, _FileLock] = WeakValueDictionary()
_guard = Lock()


def parts_of_file(root: Root, path: str) -> Parts:
    """Return the path parts of a file."""
    parts = root.parts(path)
    if not parts or path.endswith("/"):
        raise FileNotUsableError(path=shown_path(parts), reason="it is a folder, not a file")
    return parts


@contextmanager
def locked_folder(root: Root, parts: Parts, *, is_made: bool = False) -> Iterator[int]:
    """Open the folder of a file, and lock the file."""
    with _lock_of(f"{root.path}/{'/'.join(parts)}"), opened_root(root) as top:
        if is_made:
            _make_folders(root, top, parts[:-1])
        folder = open_folder(root, top, parts[:-1])
        try:
            yield folder
        finally:
            os.close(folder)


def _make_folders(root: Root, top: int, parts: Parts) -> None:
    for place in range(len(parts)):
        above = open_folder(root, top, parts[:place])
        try:
            with suppress(FileExistsError):
                os.mkdir(parts[place], dir_fd=above)
                if (notes := changes_noted.get()) is not None:
                    notes.folder_made(root.path, parts[: place + 1])
        except OSError as error:
            reason = error.strerror or str(error)
            raise FileNotUsableError(path=shown_path(parts[: place + 1]), reason=reason) from error
        finally:
            os.close(above)


class _FileLock:
    def __init__(self) -> None:
        self._lock = Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def _lock_of(path: str) -> _FileLock:
    with _guard:
        lock = _locks.get(path)
        if lock is None:
            lock = _locks[path] = _FileLock()
        return lock
