"""Creates private files."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_OWNER_ONLY = 0o600

_FLAGS = os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def open_private(path: str | os.PathLike[str], flags: int = os.O_WRONLY | os.O_EXCL) -> int:
    """Create a file that only its owner may read and write, and return its descriptor.

    The umask cannot add permissions, and others can never read the file. Windows ignores the mode. Without
    ``O_EXCL``, an existing file is opened and its mode stays.
    """
    return os.open(path, flags | _FLAGS, _OWNER_ONLY)


def create_private(path: Path) -> None:
    """An existing file stays unchanged; SQLite gives its mode to ``-wal`` and ``-shm``."""
    with suppress(FileExistsError):
        # Resolved, because SQLite would create the target of a broken link.
        os.close(open_private(path.resolve()))
