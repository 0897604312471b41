"""Opens directories without following links, so that nothing is written outside the named directory."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs

from kantan_agents.errors import FileArgumentError

_USES_DESCRIPTORS = {os.open, os.mkdir, os.stat, os.unlink, os.rename} <= os.supports_dir_fd
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_LINK = (errno.ELOOP, errno.ENOTDIR)


@attrs.frozen
class PlaceBelow:
    """A file in a directory that was reached without links.

    Without a ``directory`` descriptor, ``name`` is a path.
    """

    name: str
    directory: int | None

    def beside(self, name: str) -> str:
        """Return another file's name in the same directory."""
        return name if self.directory is not None else str(Path(self.name).with_name(name))


def boundary_of(tree: Path) -> Path:
    """Return the directory below which no link is followed.

    It is the outermost repository around ``tree``, by its path as written, or else the working directory or
    the parent of a directory elsewhere.
    """
    lexical = _absolute(tree)
    above = (lexical, *lexical.parents)
    repositories = [path for path in above if os.path.lexists(path / ".git")]
    if repositories:
        return repositories[-1]
    cwd = _absolute(Path())
    return cwd if cwd in above else lexical.parent


@contextmanager
def place_below(boundary: Path, path: Path, *, create: bool = False) -> Iterator[PlaceBelow]:
    """Open a file's directory; E79 for a link below ``boundary``."""
    file = _absolute(path)
    *parents, name = file.relative_to(boundary).parts
    if not _USES_DESCRIPTORS:
        _check_parents(boundary, parents, path)
        if create:
            file.parent.mkdir(parents=True, exist_ok=True)
        yield PlaceBelow(str(file), None)
        return
    if create:
        boundary.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(boundary, _DIRECTORY)
    try:
        for number, part in enumerate(parents, start=1):
            if create:
                _make(part, descriptor)
            inner = _open(part, descriptor, boundary.joinpath(*parents[:number]), path)
            os.close(descriptor)
            descriptor = inner
        yield PlaceBelow(name, descriptor)
    finally:
        os.close(descriptor)


def link_error(link: Path, path: Path) -> FileArgumentError:
    """Return the error for a link."""
    which = "it is a link" if _absolute(path) == link else f"a link leads to it, {link}"
    reason = f"{which}, and links are not followed; name the file itself, {os.path.realpath(path)}"
    return FileArgumentError(path=str(path), reason=reason)


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - a link is not followed


def _make(name: str, directory: int) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=directory)


def _open(name: str, directory: int, whole: Path, path: Path) -> int:
    try:
        return os.open(name, _DIRECTORY | _NO_FOLLOW, dir_fd=directory)
    except OSError as error:
        if error.errno in _LINK and whole.is_symlink():
            raise link_error(whole, path) from error
        raise


def _check_parents(boundary: Path, parents: list[str], path: Path) -> None:
    for number in range(len(parents)):
        directory = boundary.joinpath(*parents[: number + 1])
        # A Windows junction is not a symbolic link, but leads elsewhere too.
        if directory.is_symlink() or getattr(directory, "is_junction", bool)():
            raise link_error(directory, path)
