"""Reads regular files and nothing else: no pipe that never ends, no device that acts when it is opened."""

from __future__ import annotations

import errno
import os
import stat

_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def read_regular_file(path: str, limit: int) -> tuple[bytes, os.stat_result]:
    """Read a file, and what ``stat`` says of exactly the file that was read.

    Args:
        path: The file; links are followed.
        limit: So many bytes are read and no more.

    Raises:
        OSError: The system refuses, or it is no regular file.

    Returns:
        The bytes, and the file's status from before they were read.
    """
    # Before it is opened, because opening alone can have an effect; and after it, because it may be another.
    _check(os.stat(path), path)  # noqa: PTH116 - a Path would double the cost
    with open(os.open(path, _FLAGS), "rb") as file:  # noqa: PTH123 - the flags
        status = os.fstat(file.fileno())
        _check(status, path)
        return file.read(limit), status


def _check(status: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "is no regular file", path)
