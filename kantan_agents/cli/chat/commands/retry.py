"""``/retry``."""

from __future__ import annotations

from typing import Final

from kantan_agents.cli.chat.chat import Chat, ChatCommand
from kantan_agents.cli.terminal.console import NOTICE
from kantan_agents.errors import ChatCommandError


async def _retry(chat: Chat, words: str) -> None:
    if words:
        raise ChatCommandError(command="/retry", reason="it takes no words; type a new message instead")
    if await chat.talk.retry() == "interrupted":
        chat.screen.line("interrupted", NOTICE)


RETRY: Final = ChatCommand(
    "/retry", "Try the last answer again. Tool calls that were made stay, and are not made again.", _retry
)
