"""``/undo``."""

from __future__ import annotations

from typing import Final

from kantan_agents.cli.chat.chat import Chat, ChatCommand
from kantan_agents.errors import ChatCommandError


async def _undo(chat: Chat, words: str) -> None:
    if words not in ("", "list"):
        raise ChatCommandError(command="/undo", reason=f"it is /undo or /undo list, not {words!r}")
    await (chat.undo.show if words else chat.undo.undo)(chat.talk.conversation)


UNDO: Final = ChatCommand(
    "/undo [list]",
    "Put back the files that the latest answer has changed, or list such answers.",
    _undo,
    lambda _: {"list": "List the answers that have changed files."},
)
