"""Writes a file atomically: a reader sees the old or the new content."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress

from kantan_agents.errors import FileChangedError, FileNotUsableError
from kantan_agents.toolkit.files.known_files import state_of
from kantan_agents.toolkit.files.names import shown_path
from kantan_agents.toolkit.files.opening import Parts

_CREATED = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def replace_file(
    folder: int, parts: Parts, data: bytes, before: os.stat_result | None, mode: int | None = None
) -> None:
    """Write a new file next to a file, and replace it; E163 reports another state than ``before``."""
    name = parts[-1]
    part = f".{secrets.token_hex(8)}.part"
    try:
        file = os.open(part, _CREATED, 0o666, dir_fd=folder)
        try:
            _fill(file, data, folder, name, before)
            if mode is not None:
                os.fchmod(file, mode)
            _put_in_place(folder, part, parts, before)
        finally:
            os.close(file)
            with suppress(FileNotFoundError):
                os.unlink(part, dir_fd=folder)
    except OSError as error:
        raise FileNotUsableError(path=shown_path(parts), reason=error.strerror or str(error)) from error


def _fill(file: int, data: bytes, folder: int, name: str, before: os.stat_result | None) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
    if before is not None:
        own = os.fstat(file)
        if (own.st_uid, own.st_gid) != (before.st_uid, before.st_gid):
            with suppress(PermissionError):  # then the file gets the owner of this process
                os.fchown(file, before.st_uid, before.st_gid)
        _copy_attributes(file, folder, name)
        os.fchmod(file, stat.S_IMODE(before.st_mode))
    os.fsync(file)


def _copy_attributes(file: int, folder: int, name: str) -> None:
    if not hasattr(os, "listxattr"):
        return
    with suppress(OSError):
        old = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        try:
            for attribute in os.listxattr(old):
                with suppress(OSError):
                    os.setxattr(file, attribute, os.getxattr(old, attribute))
        finally:
            os.close(old)


def _put_in_place(folder: int, part: str, parts: Parts, before: os.stat_result | None) -> None:
    name = parts[-1]
    if before is None:
        try:
            # Unlike a rename, a link replaces no other file.
            os.link(part, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError as error:
            raise FileChangedError(path=shown_path(parts)) from error
        except (OSError, NotImplementedError):  # a file system without hard links
            if _exists(folder, name):
                raise FileChangedError(path=shown_path(parts)) from None
        else:
            return
    elif not _exists(folder, name) or state_of(_status(folder, name)) != state_of(before):
        raise FileChangedError(path=shown_path(parts))
    os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)


def _status(folder: int, name: str) -> os.stat_result:
    return os.stat(name, dir_fd=folder, follow_symlinks=False)


def _exists(folder: int, name: str) -> bool:
    try:
        _status(folder, name)
    except FileNotFoundError:
        return False
    return True
