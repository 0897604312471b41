"""Reads a file inside a folder: no link is followed, and no more than a limit is read."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

from kantan_agents.cli.agents.below import link_error, place_below
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.errors import FileArgumentError, FileMentionError

MAX_TEXT: Final = 100_000
MAX_IMAGE: Final = 5_000_000
# O_NONBLOCK: opening a pipe would wait for somebody to write into it. Some flags do not exist on Windows.
_FLAGS: Final = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY", "O_NOCTTY")
)


def is_file_inside(folder: Path, name: str) -> bool:
    """Return whether a name is to be read: something in the folder has it, or it leads out of the folder."""
    try:
        path = _path(folder, name)
        return not path.is_relative_to(folder) or (os.path.lexists(path) and not path.is_dir())
    except (OSError, ValueError):  # too long, or with a character that no name has
        return False


def read_inside(folder: Path, name: str, limit: int) -> tuple[bytes, int]:
    """Return the beginning of a file inside a folder, and its size, which is larger if that is not all.

    The folder is opened first and every part of the path below it on its own, without following links, so
    that nobody can exchange one in between.

    Args:
        folder: The folder, an absolute path without links.
        name: The file, relative to the folder.
        limit: The most bytes to read.

    Raises:
        FileMentionError: E193, it is outside of the folder, a link, not a regular file, or cannot be read.
    """
    path, shown = _path(folder, name), one_line(name)
    if not path.is_relative_to(folder) or path == folder:
        raise FileMentionError(name=shown, reason="it is outside of the working folder")
    try:
        with place_below(folder, path) as place:
            descriptor = os.open(place.name, _FLAGS, dir_fd=place.directory)
            try:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode):
                    raise FileMentionError(name=shown, reason="it is not a file with text or an image")
                content = _read(descriptor, limit + 1)
                return content[:limit], max(status.st_size, len(content))  # it may grow meanwhile
            finally:
                os.close(descriptor)
    except FileArgumentError as error:
        raise FileMentionError(name=shown, reason=error.reason) from error
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) == errno.ELOOP:
            raise FileMentionError(name=shown, reason=link_error(path, path).reason) from error
        raise FileMentionError(name=shown, reason=getattr(error, "strerror", None) or str(error)) from error


def _path(folder: Path, name: str) -> Path:
    return Path(os.path.abspath(folder / name))  # noqa: PTH100 - links are not followed


def _read(descriptor: int, limit: int) -> bytes:
    pieces: list[bytes] = []
    while limit > 0 and (piece := os.read(descriptor, limit)):
        pieces.append(piece)
        limit -= len(piece)
    return b"".join(pieces)
