"""Reads files below one folder without following links.

Each part of a path is opened relative to the descriptor of the previous one. So the system rejects a link
that replaces a part meanwhile.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

MAX_FILE_BYTES: Final = 4 * 1024 * 1024

_LONGEST_PATH: Final = 1024
_DEEPEST: Final = 32
_MOST_ENTRIES: Final = 10_000
_USES_DESCRIPTORS: Final = {os.open, os.stat} <= os.supports_dir_fd and os.scandir in os.supports_fd
_NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
_READ: Final = (
    os.O_RDONLY
    | _NO_FOLLOW
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)  # opening a pipe must not wait
    | getattr(os, "O_BINARY", 0)
)
_DIRECTORY: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_LINK: Final = (errno.ELOOP, errno.EMLINK)


class RefusedPathError(Exception):
    """A path that is not read; the message gives the reason."""


def read_below(folder: Path, path: str) -> str:
    """Return the text of a file below ``folder``, which must not be a link itself.

    Raises:
        RefusedPathError: The path leaves the folder or contains a link, or the file is missing, not a regular
            file, too large, or not UTF-8 text.
    """
    data = read_bytes_below(folder, path, MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise RefusedPathError(f"it is larger than {MAX_FILE_BYTES // 1024 // 1024} MiB")
    if b"\0" in data:
        raise RefusedPathError("it is a binary file, and only texts are read")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RefusedPathError("it is not a text in UTF-8") from None


def read_bytes_below(folder: Path, path: str, limit: int) -> bytes:
    """Return at most ``limit`` bytes; raises like ``read_below``."""
    parts = _parts(path)
    if not parts:
        raise RefusedPathError("it is the folder itself; name a file in it")
    try:
        if not _USES_DESCRIPTORS:
            return _read_by_path(folder, parts, limit)
        with _opened(folder, parts[:-1]) as directory:
            status = os.stat(parts[-1], dir_fd=directory, follow_symlinks=False)
            _check_regular(status)  # before opening, because opening a device can have an effect
            with open(os.open(parts[-1], _READ, dir_fd=directory), "rb") as file:  # noqa: PTH123 - the flags
                _check_regular(os.fstat(file.fileno()))
                return file.read(limit)
    except (OSError, ValueError) as error:
        raise RefusedPathError(_reason(error)) from error


def open_file(path: str, limit: int) -> tuple[bytes, os.stat_result]:
    """Return at most ``limit`` bytes of a file, and its status before the reading.

    Raises:
        OSError: The file cannot be read, or is a link or not a regular file.
    """
    _check_regular(os.lstat(path))
    with open(os.open(path, _READ), "rb") as file:  # noqa: PTH123 - the flags
        status = os.fstat(file.fileno())
        _check_regular(status)
        return file.read(limit), status


def list_below(folder: Path, most: int) -> tuple[list[str], bool]:
    """Return sorted paths, and whether more than ``most`` exist.

    Links, hidden files and unreadable folders are omitted.
    """
    if not _USES_DESCRIPTORS:
        return [], False
    found: list[str] = []
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        parts = waiting.pop(0)
        try:
            with _opened(folder, list(parts)) as directory, os.scandir(directory) as entries:
                some = list(islice(entries, _MOST_ENTRIES))
                for entry in sorted(some, key=lambda one: one.name):
                    name, is_directory = entry.name, entry.is_dir(follow_symlinks=False)
                    if name.startswith(".") or not _is_text(name):
                        continue
                    if is_directory and len(parts) < _DEEPEST:
                        waiting.append((*parts, name))
                    elif entry.is_file(follow_symlinks=False):
                        found.append("/".join((*parts, name)))
        except OSError:
            continue
        if len(found) > most or len(waiting) > most:
            return sorted(found)[:most], True
    return sorted(found), False


def _parts(path: str) -> list[str]:
    if not _is_text(path) or "\0" in path or len(path) > _LONGEST_PATH:
        raise RefusedPathError("it is not a path")
    if path.startswith(("/", "~")) or "\\" in path or ":" in path:
        raise RefusedPathError("it must be relative to the folder of the skill, with / between its parts")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise RefusedPathError("it leaves the folder of the skill")
    if len(parts) > _DEEPEST:
        raise RefusedPathError("it has too many parts")
    return parts


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def _opened(folder: Path, parts: list[str]) -> Iterator[int]:
    descriptor = os.open(folder, _DIRECTORY | _NO_FOLLOW)
    try:
        for part in parts:
            inner = os.open(part, _DIRECTORY | _NO_FOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _read_by_path(folder: Path, parts: list[str], limit: int) -> bytes:
    path = folder
    for part in parts:
        path /= part
        # A junction of Windows is not a symbolic link, but leads elsewhere too.
        if path.is_symlink() or getattr(path, "is_junction", bool)():
            raise OSError(errno.ELOOP, "is a link")
    _check_regular(path.stat())
    with path.open("rb") as file:
        return file.read(limit)


def _check_regular(status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise OSError(errno.ELOOP, "is a link")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.errno in _LINK:
        return "it is a link, or a link leads to it, and links are not followed"
    if isinstance(error, OSError) and error.errno == errno.ENOTDIR:
        return "a part of it is a file or a link, not a folder"
    if isinstance(error, FileNotFoundError):
        return "there is no such file"
    return getattr(error, "strerror", None) or str(error)
