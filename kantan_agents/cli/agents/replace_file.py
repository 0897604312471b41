"""Replaces the content of a file atomically."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kantan_agents.cli.agents.below import PlaceBelow, link_error, place_below
from kantan_agents.errors import FileArgumentError

_COMMON = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _COMMON
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _COMMON
_OWNER_ONLY = 0o600
_GROUP, _OTHERS = 0o070, 0o007


def replace_file(path: Path, before: bytes, after: bytes, *, boundary: Path) -> None:
    """Replace the content of a file atomically; no link below ``boundary`` is followed.

    Readers see either the old or the new content. The file keeps its mode and, as far as the system allows,
    its owner and group. It never becomes readable for more users than before.

    Args:
        path: The file.
        before: Its content when it was read.
        after: The new content.
        boundary: A directory above the file; see ``boundary_of``.

    Raises:
        FileArgumentError: E79, a link leads to it, it has changed since it was read, has hard links, or
            cannot be written.
    """
    with _place(path, boundary) as place:
        status = _checked_status(path, place)
        if not os.access(place.name, os.W_OK, dir_fd=place.directory):
            raise FileArgumentError(path=str(path), reason="it may not be written")
        beside = place.beside(f".{secrets.token_hex(8)}.part")
        try:
            _write(beside, place, after, status)
            if _read(place) != before:
                raise FileArgumentError(path=str(path), reason="it was changed by another program")
            # If the name has become a link by now, the link is replaced and not its target.
            os.replace(beside, place.name, src_dir_fd=place.directory, dst_dir_fd=place.directory)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(beside, dir_fd=place.directory)


def check_replaceable(path: Path, *, boundary: Path) -> None:
    """Raise if links prevent ``replace_file``.

    Raises:
        FileArgumentError: E79, a link leads to the file, it has hard links, or it does not exist.
    """
    with _place(path, boundary) as place:
        _checked_status(path, place)


@contextmanager
def _place(path: Path, boundary: Path) -> Iterator[PlaceBelow]:
    try:
        with place_below(boundary, path) as place:
            yield place
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileArgumentError(path=str(path), reason=reason) from error


def _checked_status(path: Path, place: PlaceBelow) -> os.stat_result:
    status = os.stat(place.name, dir_fd=place.directory, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        raise link_error(Path(os.path.abspath(path)), path)  # noqa: PTH100 - a link is not followed
    if not stat.S_ISREG(status.st_mode):
        raise FileArgumentError(path=str(path), reason="it is not a regular file")
    if status.st_nlink > 1:
        reason = f"it has {status.st_nlink} names (hard links), and only this one would change"
        raise FileArgumentError(path=str(path), reason=reason)
    return status


def _read(place: PlaceBelow) -> bytes:
    with open(os.open(place.name, _READ, dir_fd=place.directory), "rb") as file:  # noqa: PTH123 - the flags
        return file.read()


def _write(name: str, place: PlaceBelow, content: bytes, like: os.stat_result) -> None:
    """Write a new file with the owner, group and mode of another."""
    descriptor = os.open(name, _FLAGS, _OWNER_ONLY, dir_fd=place.directory)
    with open(descriptor, "wb") as file:  # noqa: PTH123 - the flags
        file.write(content)
        file.flush()
        if hasattr(os, "fchown"):
            # By descriptor, because the name may belong to another file by now.
            _copy_ownership(file.fileno(), like)
        os.fsync(file.fileno())


def _copy_ownership(file: int, like: os.stat_result) -> None:
    """Copy group, owner and mode to a file, in this order, because each step may reset a later one."""
    mode = like.st_mode & 0o777
    if not _chown(file, -1, like.st_gid):
        # The file has a different group, which must not get more permissions than all other users have.
        mode = (mode & ~_GROUP) | ((mode & _OTHERS) << 3)
    _chown(file, like.st_uid, -1)
    os.fchmod(file, mode)


def _chown(file: int, owner: int, group: int) -> bool:
    try:
        os.fchown(file, owner, group)
    except OSError:
        # Without the permission to change it, the file belongs to the current user.
        return False
    return True
