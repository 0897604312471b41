"""Where the user's data is."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def conversations_file() -> Path:
    """Return the file that conversations are kept in unless another one is named."""
    return _data_folder() / "kantan-agents" / "conversations.sqlite3"


def _data_folder() -> Path:
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    if sys.platform == "darwin":
        return home / "Library" / "Application Support"
    given = os.environ.get("XDG_DATA_HOME", "")
    # The specification of these folders says that a relative one is to be ignored.
    return Path(given) if given.startswith("/") else home / ".local" / "share"
