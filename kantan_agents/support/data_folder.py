"""The user's data folder, which tools and sandboxed commands do not see."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path


def data_folder() -> Path:
    """The folder need not exist; RuntimeError without a home folder."""
    return _of_user() / "kantan-agents"


def data_folder_near(root: str) -> str | None:
    """Return the folder if it is below a root, or the root in it.

    A missing one is created, so that neither a tool nor a command can create it.
    """
    with suppress(RuntimeError, OSError):
        path = os.path.realpath(data_folder())
        if os.path.commonpath((path, root)) in (path, root):
            os.makedirs(path, mode=0o700, exist_ok=True)  # noqa: PTH103
            return path
    return None


def _of_user() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    given = os.environ.get("XDG_DATA_HOME", "")
    # The XDG specification requires that relative paths are ignored.
    return Path(given) if given.startswith("/") else Path.home() / ".local" / "share"
