"""Where the user's data is."""

from __future__ import annotations

from pathlib import Path

from kantan_agents.errors import ConversationsFileError
from kantan_agents.support.data_folder import data_folder


def conversations_file() -> Path:
    """Return the file that conversations are kept in unless another one is named.

    Raises:
        ConversationsFileError: E195, the user has no home folder.
    """
    try:
        return data_folder() / "conversations.sqlite3"
    except RuntimeError as error:  # a user id that the system does not know, as in containers
        raise ConversationsFileError(path="~", reason=str(error)) from error
