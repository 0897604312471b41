"""Replaces the content of a file atomically."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from kantan_agents.errors import FileArgumentError

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_OWNER_ONLY = 0o600
_GROUP, _OTHERS = 0o070, 0o007


def replace_file(path: Path, before: bytes, after: bytes) -> None:
    """Replace the content of a file atomically; links are followed.

    Readers see either the old or the new content. The file keeps its mode and, as far as the system allows,
    its owner and group. It never becomes readable for more users than before.

    Args:
        path: The file.
        before: Its content when it was read.
        after: The new content.

    Raises:
        FileArgumentError: E79, it has changed since it was read, has hard links, or cannot be written.
    """
    try:
        target = path.resolve(strict=True)
        status = target.stat()
        if not os.access(target, os.W_OK):
            raise FileArgumentError(path=str(path), reason="it may not be written")
        if status.st_nlink > 1:
            reason = f"it has {status.st_nlink} names (hard links), and only this one would change"
            raise FileArgumentError(path=str(path), reason=reason)
        beside = target.with_name(f".{secrets.token_hex(8)}.part")
        try:
            _write(beside, after, status)
            if target.read_bytes() != before:
                raise FileArgumentError(path=str(path), reason="it was changed by another program")
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileArgumentError(path=str(path), reason=reason) from error


def _write(path: Path, content: bytes, like: os.stat_result) -> None:
    """Write a new file with the owner, group and mode of another."""
    with open(os.open(path, _FLAGS, _OWNER_ONLY), "wb") as file:  # noqa: PTH123 - the flags
        file.write(content)
        file.flush()
        if hasattr(os, "fchown"):
            # By descriptor, because the path may lead to another file by now.
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
