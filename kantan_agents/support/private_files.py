"""Creates files that only the owner may read."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_OWNER_ONLY = 0o600

_FLAGS = os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def open_private(path: str | os.PathLike[str], flags: int = os.O_WRONLY | os.O_EXCL) -> int:
    """Create a file that only its owner may read and write, and return its descriptor.

    The umask cannot add permissions, and others can never read the file. Windows ignores the mode. The
    library creates all files with content here. Without ``O_EXCL``, an existing file is opened and its mode
    stays.
    """
    return os.open(path, flags | _FLAGS, _OWNER_ONLY)


def create_private(path: Path) -> None:
    """Create an empty file for its owner only; an existing file stays unchanged.

    SQLite gives ``-wal`` and ``-shm`` the mode of the database.
    """
    with suppress(FileExistsError):
        # Resolved, because SQLite would create the target of a broken link.
        os.close(open_private(path.resolve()))
