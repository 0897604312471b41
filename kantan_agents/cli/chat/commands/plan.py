"""``/plan``."""

from __future__ import annotations

from typing import Final

from kantan_agents.cli.chat.chat import Chat, ChatCommand
from kantan_agents.cli.terminal.console import LABEL
from kantan_agents.errors import ChatCommandError

_OFF: Final = "off"


async def _plan(chat: Chat, words: str) -> None:
    if words not in ("", _OFF):
        raise ChatCommandError(command="/plan", reason=f"it is /plan or /plan off, not {words!r:.60}")
    if words == _OFF:
        chat.plan.leave()
        chat.screen.line("Plan mode is off.", LABEL)
    else:
        chat.plan.enter()
        chat.jobs.remind()  # their changes are not denied
        chat.screen.line("Plan mode: agents only read, until you agree to a plan. /plan off ends it.", LABEL)


PLAN: Final = ChatCommand(
    "/plan [off]",
    "Let agents only read, until you agree to a plan; or end that.",
    _plan,
    lambda _: {_OFF: "End plan mode without a plan."},
)
