"""Asks about tool calls that need an approval: the person at the terminal, or nobody."""

from __future__ import annotations

import json
from typing import Final

from kantan_agents.cli.chat.answer_view import short_name
from kantan_agents.cli.chat.editor import Editor
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.terminal.approvals import ApprovalAnswer
from kantan_agents.cli.terminal.console import NOTICE
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.middleware.approve.calls import PendingCall
from kantan_agents.support.invisible import by_code

_QUESTION: Final = "[y]es, [n]o, [a]lways: "
_REASON: Final = "Why not? "
_UNASKED: Final = "Nobody could be asked."


class AskAtTerminal:
    """Asks at the terminal, one question at a time.

    Args:
        editor: Reads the answers.
        screen: Shows the questions.
    """

    def __init__(self, editor: Editor, screen: Screen) -> None:
        self._editor = editor
        self._screen = screen

    async def __call__(self, call: PendingCall) -> ApprovalAnswer | None:
        """Ask about a call; None if the person has pressed Ctrl-C or Ctrl-D instead."""
        async with self._screen.lock:
            self._screen.line(
                f"{short_name(call.agent)} asks for an approval of {short_name(call.tool)}:", NOTICE
            )
            # All of it: a person must see what they approve.
            self._screen.block(by_code(_arguments(call), strict=True))
            try:
                return await self._answer()
            except (KeyboardInterrupt, EOFError):
                return None

    async def _answer(self) -> ApprovalAnswer:
        while True:
            typed = (await self._editor.ask(_QUESTION)).strip().lower()
            match typed:
                case "y" | "yes":
                    return ApprovalAnswer("yes")
                case "a" | "always":
                    return ApprovalAnswer("always")
                case "n" | "no":
                    return ApprovalAnswer("no", one_line(await self._editor.ask(_REASON)))
            self._screen.line("Type y for this call, n to refuse it, or a for all calls of this tool.")


async def refuse(screen: Screen, call: PendingCall) -> ApprovalAnswer:
    """Refuse a call, because no person is there to be asked."""
    name = short_name(call.tool)
    async with screen.lock:
        screen.line(
            f"refused {name}: it needs an approval, and nobody can be asked; --yes {name} approves it"
        )
    return ApprovalAnswer("no", _UNASKED)


def _arguments(call: PendingCall) -> str:
    try:
        values = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return call.arguments
    return json.dumps(values, ensure_ascii=False, indent=2)
