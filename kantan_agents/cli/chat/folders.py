"""The locations of the user's data."""

from __future__ import annotations

from pathlib import Path

from kantan_agents.errors import ConversationsFileError
from kantan_agents.support.data_folder import data_folder


def conversations_file() -> Path:
    """Return the default file; E195 without a home folder."""
    return _file("conversations.sqlite3")


def history_file() -> Path:
    """Return the history's file; E195 without a home folder."""
    return _file("history.jsonl")


def _file(name: str) -> Path:
    try:
        return data_folder() / name
    except RuntimeError as error:  # a user id that the system does not know, as in containers
        raise ConversationsFileError(path="~", reason=str(error)) from error
