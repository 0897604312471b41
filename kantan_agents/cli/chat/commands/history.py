"""``/history``."""

from __future__ import annotations

from typing import Final

import anyio.to_thread

from kantan_agents.cli.chat.chat import Chat, ChatCommand
from kantan_agents.cli.terminal.console import LABEL
from kantan_agents.errors import ChatCommandError


async def _history(chat: Chat, words: str) -> None:
    history = chat.history
    if history.file is None:
        raise ChatCommandError(command="/history", reason="what is typed in this chat is not kept")
    if words not in ("", "clear"):
        raise ChatCommandError(command="/history", reason=f"it is /history or /history clear, not {words!r}")
    path = history.file.path
    try:
        if words:
            await history.clear()
            chat.screen.line("The history is removed.", LABEL)
        else:
            count = len(await anyio.to_thread.run_sync(history.file.read))
            chat.screen.block(f"{count:,} of your messages and commands are in {path}.")
    except OSError as error:
        raise ChatCommandError(command="/history", reason=f"{path}: {error.strerror or error}") from error


HISTORY: Final = ChatCommand(
    "/history [clear]",
    "Show where what you type is kept for the arrow keys, or remove it.",
    _history,
    lambda _: {"clear": "Remove all of it."},
)
