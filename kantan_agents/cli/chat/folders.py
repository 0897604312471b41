"""Where the user's data is."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from kantan_agents.errors import ConversationsFileError


def conversations_file() -> Path:
    """Return the file that conversations are kept in unless another one is named.

    Raises:
        ConversationsFileError: E195, the user has no home folder.
    """
    return _file("conversations.sqlite3")


def history_file() -> Path:
    """Return the file that what is typed is kept in.

    Raises:
        ConversationsFileError: E195, the user has no home folder.
    """
    return _file("history.jsonl")


def _file(name: str) -> Path:
    try:
        return _data_folder() / "kantan-agents" / name
    except RuntimeError as error:  # a user id that the system does not know, as in containers
        raise ConversationsFileError(path="~", reason=str(error)) from error


def _data_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support"
    given = os.environ.get("XDG_DATA_HOME", "")
    # The specification of these folders says that a relative one is to be ignored.
    return Path(given) if given.startswith("/") else Path.home() / ".local" / "share"
