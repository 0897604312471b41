"""A file's new content, there in one moment or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from kantan_agents.errors import FileArgumentError

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_ONLY_MINE = 0o600
_GROUP, _OTHERS = 0o070, 0o007


def replace_file(path: Path, before: bytes, after: bytes) -> None:
    """Replace the content of a file; of a link, that of the file it leads to.

    Whoever reads it meanwhile gets the one content or the other, whole. The file keeps its mode, and its
    owner and group as far as the system allows that; nobody may read it who could not before.

    Args:
        path: The file.
        before: What it held when it was read.
        after: What it is to hold.

    Raises:
        FileArgumentError: E79, it has changed since it was read, has a second name, or cannot be written.
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
                raise FileArgumentError(path=str(path), reason="it was changed meanwhile")
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileArgumentError(path=str(path), reason=reason) from error


def _write(path: Path, content: bytes, like: os.stat_result) -> None:
    """Write a new file that belongs to whom another belongs to."""
    with open(os.open(path, _FLAGS, _ONLY_MINE), "wb") as file:  # noqa: PTH123 - the flags
        file.write(content)
        file.flush()
        if hasattr(os, "fchown"):
            # By its number: the name may lead elsewhere by now.
            _pass_on(file.fileno(), like)
        os.fsync(file.fileno())


def _pass_on(file: int, like: os.stat_result) -> None:
    """Give a file the group, the owner and the mode of another, in this order: each can undo the next."""
    mode = like.st_mode & 0o777
    if not _chown(file, -1, like.st_gid):
        # The group is another, which gets no more than everybody has.
        mode = (mode & ~_GROUP) | ((mode & _OTHERS) << 3)
    _chown(file, like.st_uid, -1)
    os.fchmod(file, mode)


def _chown(file: int, owner: int, group: int) -> bool:
    try:
        os.fchown(file, owner, group)
    except OSError:
        # Who may not give files away makes files that are their own.
        return False
    return True
