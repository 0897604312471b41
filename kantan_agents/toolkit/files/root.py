"""The root folder of a toolkit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs

from kantan_agents.errors import (
    FileNotUsableError,
    InvalidOptionError,
    OutsideRootError,
    ToolkitUnavailableError,
)
from kantan_agents.support.arguments import checked_path
from kantan_agents.support.data_folder import data_folder_near

MAX_DEPTH = 200

_NEEDED = ("O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK")
_SHOWN = 100


def _anything(_: str) -> bool:
    return True


@attrs.frozen
class Root:
    """A folder that the tools cannot leave.

    ``path`` has no symbolic links; ``given`` is the user's absolute path. Rules may name the folder by
    ``names``. ``hidden`` identifies the library's data folder below it, which stays closed. ``may_name``: an
    error may name a path unknown to the model.
    """

    path: str
    given: str
    device: int
    folds_names: bool = False
    names: tuple[str, ...] = ()
    hidden: tuple[int, int] | None = None
    may_name: Callable[[str], bool] = attrs.field(default=_anything, eq=False, repr=False)

    @classmethod
    def at(cls, root: Any) -> Root:
        """Return the root folder at a path.

        Raises E75 in this library's data folder, E165 if the system cannot confine tools.
        """
        text = checked_path("root", root)
        if not all(hasattr(os, name) for name in _NEEDED) or os.open not in os.supports_dir_fd:
            reason = "it cannot open files relative to a folder, which needs Linux or macOS"
            raise ToolkitUnavailableError(reason=reason)
        try:
            real = Path(text).resolve(strict=True)
            if not real.is_dir():
                raise NotADirectoryError(text)
            device, folds_names = real.stat().st_dev, _folds_names(real)
            own = data_folder_near(str(real))
            found = None if own is None else Path(own).stat()
        except (OSError, ValueError, RuntimeError) as error:
            reason = f"must be a folder that exists, not {text!r}"
            raise InvalidOptionError(option="root", reason=reason) from error
        if own is not None and real.is_relative_to(own):
            raise InvalidOptionError(
                option="root", reason=f"must not be in {own}: kantan-agents stores its data there"
            )
        given = os.path.abspath(text)  # noqa: PTH100 - keeps no "..", too
        names = tuple(dict.fromkeys((str(real), given, *_through_links(str(real)))))
        hidden = None if found is None else (found.st_dev, found.st_ino)
        return cls(str(real), given, device, folds_names, names, hidden)

    def relative(self, path: str) -> str | None:
        """Return a path relative to the root, as rules compare it; None outside.

        The string alone decides, because the tools never follow a symbolic link.
        """
        try:
            is_usable = "\0" not in path and bool(os.fsencode(path) or True)
        except UnicodeEncodeError:
            is_usable = False
        for base in (self.path, self.given) if is_usable else ():
            found = _below(base, os.path.normpath(f"{base}/{path}" if not path.startswith("/") else path))
            if found is not None:
                return found
        return None

    def parts(self, path: str) -> tuple[str, ...]:
        """Return the names from the root to a path; raise E160 outside, E161 if it is too deep."""
        found = self.relative(path)
        if found is None:
            reason = "paths are relative to the root folder, or absolute and below it"
            raise OutsideRootError(path=path.encode("utf-8", "replace").decode(), reason=reason)
        if found.count("/") >= MAX_DEPTH:
            raise FileNotUsableError(path=found[:_SHOWN], reason=f"it has more than {MAX_DEPTH} names")
        return tuple(found.split("/")) if found else ()


def _below(base: str, path: str) -> str | None:
    path = f"/{path.lstrip('/')}"  # in POSIX, two leading slashes have a special meaning
    if path == base:
        return ""
    prefix = base if base == "/" else f"{base}/"
    return path[len(prefix) :] if path.startswith(prefix) else None


def _through_links(path: str) -> Iterator[str]:
    """Yield a path through the links in `/`, such as ``/tmp`` for ``/private/tmp`` on macOS."""
    for link in Path("/").iterdir():
        if link.is_symlink():
            rest = _below(os.path.realpath(link), path)
            if rest is not None:
                yield f"{link}/{rest}".rstrip("/")


def _folds_names(root: Path) -> bool:
    some = next((path for path in root.iterdir() if _swapped(path) != path), root)
    try:
        return _swapped(some) != some and _swapped(some).samefile(some)
    except OSError:
        return False


def _swapped(path: Path) -> Path:
    return path.with_name(path.name.swapcase()) if path.name else path
