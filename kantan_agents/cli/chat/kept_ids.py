"""Completes the ids of kept conversations, for ``--resume``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import typer

from kantan_agents.cli.terminal.shell_words import shell_words

_LISTED: Final = 50


def complete_conversation(invocation: typer.Context, incomplete: str) -> Iterable[tuple[str, str]]:
    """Return the newest conversations, each with its first question.

    Args:
        invocation: The options that were typed before, such as ``--conversations``.
        incomplete: What was typed of the id.
    """
    from kantan_agents.cli.chat.conversations import Conversations
    from kantan_agents.cli.chat.folders import conversations_file
    from kantan_agents.errors import ConversationsFileError

    named = invocation.params.get("conversations")
    path = Path(named) if named else conversations_file()
    if not path.is_file():
        return []
    try:
        store = Conversations(path)
        try:
            listed = store.newest(_LISTED)
        finally:
            store.close()
    except ConversationsFileError:
        return []
    choices = [("last", "the newest one"), *((one.id, one.title) for one in listed)]
    return list(shell_words(choices, incomplete))
