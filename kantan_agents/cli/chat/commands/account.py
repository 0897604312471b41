"""``/cost`` and ``/trace``."""

from __future__ import annotations

import shlex
from typing import Final

from kantan_agents.cli.chat.chat import Chat, ChatCommand
from kantan_agents.errors import ChatCommandError


async def _cost(chat: Chat, words: str) -> None:
    del words
    chat.screen.block("\n".join(chat.costs.lines()))


async def _trace(chat: Chat, words: str) -> None:
    if chat.page is None:
        raise ChatCommandError(command="/trace", reason="the answers of this chat are not recorded")
    if chat.talk.trace_id is None:
        raise ChatCommandError(command="/trace", reason="there is no answer yet")
    if words not in ("", "open"):
        raise ChatCommandError(command="/trace", reason=f"it is /trace or /trace open, not {words!r}")
    if words:
        chat.screen.block(await chat.page.open(chat.talk.trace_id))
    else:
        chat.screen.block(shlex.join(chat.page.command(chat.talk.trace_id)))


COST: Final = ChatCommand("/cost", "Show the tokens of this chat, and what they cost.", _cost)
TRACE: Final = ChatCommand(
    "/trace [open]",
    "Show how to see the last answer in the traces, or open its page.",
    _trace,
    lambda _: {"open": "Open the page of the last answer."},
)
