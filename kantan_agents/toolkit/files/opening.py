"""Opens files and folders below the root, name by name, without following a symbolic link.

Each name is opened relative to the previous folder, so concurrent changes of the path lead nowhere else. A
symbolic link is an error that names its target, which the rules then check.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from kantan_agents.errors import FileNotUsableError, KantanAgentsError, OutsideRootError
from kantan_agents.support.nearest import nearest
from kantan_agents.toolkit.files.names import shown_path
from kantan_agents.toolkit.files.root import Root

Parts = tuple[str, ...]

_COMMON = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_LISTED = _COMMON | os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
# Passing through a folder needs no right to list it.
_PASSED = _LISTED | getattr(os, "O_PATH", 0)
# Opening a pipe without a writer would wait.
_FILE = _COMMON | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_MOST_NAMES = 10_000
_MOST_HINTS = 5

KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@contextmanager
def opened_root(root: Root) -> Iterator[int]:
    """Open the root folder; the path must still contain no link."""
    try:
        folder = os.open("/", _PASSED)
        for name in root.path.split("/")[1:] if root.path != "/" else ():
            folder = _stepped(folder, name, _PASSED)
    except OSError as error:
        reason = f"the root folder is no longer there ({error.strerror})"
        raise FileNotUsableError(path=".", reason=reason) from error
    try:
        yield folder
    finally:
        os.close(folder)


def open_folder(
    root: Root, top: int, parts: Parts, *, is_listed: bool = False, is_found: bool = False
) -> int:
    """Return a new descriptor of a folder.

    Pass ``is_found`` for names from a listing, which have the spelling of the file system.
    """
    try:
        folder = os.open(".", _LISTED if is_listed and not parts else _PASSED, dir_fd=top)
    except OSError as error:
        raise FileNotUsableError(path=".", reason=error.strerror or str(error)) from error
    for place, name in enumerate(parts):
        is_last = place == len(parts) - 1
        try:
            if not is_found:
                _check_spelling(root, folder, name)
            inner = os.open(name, _LISTED if is_last and is_listed else _PASSED, dir_fd=folder)
        except (OSError, KantanAgentsError) as error:
            with _closing(folder):
                raise_unusable(root, folder, parts[: place + 1], error)
        try:
            check_mount(root, inner, folder, parts[: place + 1])
        except BaseException:
            os.close(inner)
            raise
        finally:
            os.close(folder)
        folder = inner
    return folder


def open_file(root: Root, folder: int, parts: Parts, flags: int = os.O_RDONLY) -> int:
    """Return a new descriptor of a regular file."""
    try:
        # Before it is opened: opening a device may have effects.
        check_regular(parts, os.stat(parts[-1], dir_fd=folder, follow_symlinks=False))
        _check_spelling(root, folder, parts[-1])
        file = os.open(parts[-1], _FILE | flags, dir_fd=folder)
    except (OSError, KantanAgentsError) as error:
        raise_unusable(root, folder, parts, error)
    try:
        check_regular(parts, os.fstat(file))
        check_mount(root, file, folder, parts)
    except BaseException:
        os.close(file)
        raise
    return file


def open_found(folder: int, name: str) -> int:
    """Return a descriptor of a regular file from a listing."""
    return os.open(name, _FILE | os.O_RDONLY, dir_fd=folder)


def is_folder(root: Root, top: int, parts: Parts) -> bool:
    """Return whether a path is a folder."""
    folder = open_folder(root, top, parts[:-1])
    try:
        found = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    finally:
        os.close(folder)
    return stat.S_ISDIR(found.st_mode)


def check_regular(parts: Parts, found: os.stat_result) -> None:
    """Raise E161 unless the file is regular."""
    kind = kind_of(found)
    if kind is not None:
        hint = ": list it with LS" if stat.S_ISDIR(found.st_mode) else ""
        raise FileNotUsableError(path=shown_path(parts), reason=f"it is {kind}, not a file{hint}")


def kind_of(found: os.stat_result) -> str | None:
    """Return the kind of file in words; None for a regular file."""
    if stat.S_ISREG(found.st_mode):
        return None
    return next((kind for is_kind, kind in KINDS if is_kind(found.st_mode)), "something unknown")


def check_mount(root: Root, opened: int, folder: int, parts: Parts) -> None:
    """Raise E160 for another file system, or the library's data folder."""
    found = os.fstat(opened)
    if (found.st_dev, found.st_ino) == root.hidden:
        raise OutsideRootError(path=shown_path(parts), reason="kantan-agents stores its data there")
    if found.st_dev != root.device and not is_same_mount(opened, folder):
        reason = "another file system is mounted there"
        raise OutsideRootError(path=shown_path(parts), reason=reason)


def raise_unusable(root: Root, folder: int, parts: Parts, error: Exception) -> NoReturn:
    """Raise the error for a failed open."""
    found = unusable(root, folder, parts, error)
    raise found from None if found is error else error  # not from itself: a chain of causes must end


def unusable(root: Root, folder: int, parts: Parts, error: Exception) -> Exception:
    """Return the error for a failed open."""
    target = _target(folder, parts[-1])
    if target is not None:
        return _link_error(root, parts, target)
    if not isinstance(error, OSError):
        return error
    path = shown_path(parts)
    if error.errno == errno.ENOENT:
        near = _nearest(root, folder, parts)
        hint = f"; did you mean {near!r}?" if near else ""
        return FileNotUsableError(path=path, reason=f"it does not exist{hint}")
    if error.errno == errno.ENOTDIR:
        return FileNotUsableError(path=path, reason="it is a file, not a folder")
    return FileNotUsableError(path=path, reason=error.strerror or str(error))


def _link_error(root: Root, parts: Parts, target: str) -> Exception:
    inside = root.relative(target if target.startswith("/") else "/".join((*parts[:-1], target)))
    if inside is None:
        reason = "it is a symbolic link that leads out of the root folder"
        return OutsideRootError(path=shown_path(parts), reason=reason)
    to = shown_path(tuple(inside.split("/")) if inside else ())
    use = f": use its target {to!r}" if root.may_name(inside) else ""
    reason = f"it is a symbolic link, and links are not followed{use}"
    return FileNotUsableError(path=shown_path(parts), reason=reason)


def _target(folder: int, name: str) -> str | None:
    try:
        return os.readlink(name, dir_fd=folder)
    except (OSError, ValueError):
        return None


def _nearest(root: Root, folder: int, parts: Parts) -> str | None:
    left = names_in(folder)[:_MOST_NAMES]
    # Hidden names are skipped, so that their absence reveals nothing.
    for _ in range(_MOST_HINTS):
        near = nearest(shown_path(parts[-1:]), left) if left else None
        if near is None:
            return None
        path = (*parts[:-1], near)
        if root.may_name("/".join(path)):
            return shown_path(path)
        left.remove(near)
    return None


def names_in(folder: int) -> list[str]:
    """Return the names in a folder that can be listed."""
    try:
        listed = os.open(".", _LISTED, dir_fd=folder)
    except OSError:
        return []
    try:
        return os.listdir(listed)  # noqa: PTH208 - of a descriptor
    except OSError:
        return []
    finally:
        os.close(listed)


def _check_spelling(root: Root, folder: int, name: str) -> None:
    """Raise for another spelling of the name, which the file system accepts and rules do not."""
    if not root.folds_names:
        return
    names = names_in(folder)
    if name not in names:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))


def _stepped(folder: int, name: str, flags: int) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    finally:
        os.close(folder)


@contextmanager
def _closing(folder: int) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(OSError):
            os.close(folder)


def is_same_mount(one: int, other: int) -> bool:
    """Return whether two descriptors are of the same mount; False if unknown.

    In some containers, a file and its folder on one mount have different device numbers.
    """
    first = _mount_of(one)
    return first is not None and first == _mount_of(other)


def _mount_of(descriptor: int) -> str | None:
    try:
        lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):
        return None
    return next((line for line in lines if line.startswith("mnt_id:")), None)
