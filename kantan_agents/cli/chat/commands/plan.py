"""``/plan``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kantan_agents.cli.chat.chat import Chat, ChatCommand
from kantan_agents.cli.terminal.console import LABEL
from kantan_agents.errors import ChatCommandError

_OFF: Final = "off"


async def _plan(chat: Chat, words: str) -> None:
    if words not in ("", _OFF):
        raise ChatCommandError(command="/plan", reason=f"it is /plan or /plan off, not {words!r:.60}")
    if words == _OFF:
        chat.talk.plan.leave()
        chat.screen.line("Plan mode is off.", LABEL)
    else:
        chat.talk.plan.enter()
        chat.screen.line("Plan mode: agents only read, until you agree to a plan. /plan off ends it.", LABEL)


def _ways(chat: Chat) -> Mapping[str, str]:
    del chat
    return {_OFF: "End plan mode without a plan."}


PLAN: Final = ChatCommand(
    "/plan [off]", "Let agents only read, until you agree to a plan; or end that.", _plan, _ways
)
