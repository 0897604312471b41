"""Creates files that only the owner may read."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_OWNER_ONLY = 0o600

_FLAGS = os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def open_private(path: str | os.PathLike[str], flags: int = os.O_WRONLY | os.O_EXCL) -> int:
    """Create the file at ``path``, which only its owner may read and write, and return its descriptor.

    The umask cannot add permissions, and others can never read the file. Windows ignores the mode. All files
    with content that the library creates are created here.

    Args:
        path: The file.
        flags: Flags of ``os.open`` in addition to ``O_CREAT``. Without ``O_EXCL``, an existing file is opened
            and its mode stays.

    Raises:
        FileExistsError: The file exists.
        OSError: It cannot be created.
    """
    return os.open(path, flags | _FLAGS, _OWNER_ONLY)


def create_private(path: Path) -> None:
    """Create an empty file at ``path`` for its owner only; an existing file stays unchanged.

    SQLite gives its log and its index (``-wal``, ``-shm``) the mode of the database.

    Raises:
        OSError: It cannot be created.
    """
    with suppress(FileExistsError):
        # Resolved, because SQLite would create the target of a broken link.
        os.close(open_private(path.resolve()))
