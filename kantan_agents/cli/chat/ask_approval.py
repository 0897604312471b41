"""Asks the user about tool calls, or denies them without a terminal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import anyio.to_thread

from kantan_agents.cli.chat.answer_view import short_name
from kantan_agents.cli.chat.editor import Editor
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.terminal.approvals import ApprovalAnswer, AskedCall, approving
from kantan_agents.cli.terminal.console import BAD, LABEL, NOTICE
from kantan_agents.cli.terminal.file_diff import SHOWN_LINES, diff_lines, visible
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.middleware.approve.calls import PendingCall
from kantan_agents.support.invisible import by_code

if TYPE_CHECKING:
    from kantan_agents.toolkit.files.editing.changes import FileChange

_QUESTION: Final = "[y]es, [n]o, [a]lways: "
_OWN_QUESTION: Final = "[y]es, [n]o: "
_REASON: Final = "Why not? "
_UNASKED: Final = "Nobody could be asked."


class AskAtTerminal:
    """Asks one question at a time."""

    def __init__(self, editor: Editor, screen: Screen, place: str = "") -> None:
        self._place = f" ({place})" if place else ""
        self._editor = editor
        self._screen = screen

    async def __call__(self, asked: AskedCall) -> ApprovalAnswer | None:
        """Ask; None after Ctrl-C or Ctrl-D."""
        call, change = asked.call, asked.change
        async with self._screen.lock:
            place = self._place if call.tool == "Bash" else ""
            if call.tool == "Bash" and call.values.get("run_in_background"):
                place = f" in the background{place}"
            self._screen.line(
                f"{short_name(call.agent)} asks for an approval of {short_name(call.tool)}{place}:", NOTICE
            )
            rest: list[str] = []
            if change is None or change.problem is not None:
                # In full: users must see what they approve.
                self._screen.block(by_code(_arguments(call), strict=True))
            else:
                rest = await self._show_change(change)
            if asked.protected is not None:
                path, why = asked.protected
                self._screen.block(f"{visible(path)} is protected: {why}.", BAD)
            if asked.always is not None:
                self._screen.block(f"always: {visible(asked.always.words)}", LABEL)
            try:
                return await self._answer(asked, rest)
            except (KeyboardInterrupt, EOFError):
                return None

    async def _show_change(self, change: FileChange) -> list[str]:
        done = "creates" if change.before is None else "changes"
        self._screen.block(f"It {done} {visible(change.path)}:")
        lines = await anyio.to_thread.run_sync(lambda: list(diff_lines(change.before, change.after)))
        self._screen.block("\n".join(lines[:SHOWN_LINES]) or "(nothing: the text is the same)")
        rest = lines[SHOWN_LINES:]
        if rest:
            self._screen.block(f"... and {len(rest):,} more lines: type s to see them", NOTICE)
        return rest

    async def _answer(self, asked: AskedCall, rest: list[str]) -> ApprovalAnswer:
        while True:
            question = _OWN_QUESTION if asked.always is None else _QUESTION
            typed = (await self._editor.ask(question)).strip().lower()
            match typed:
                case "y" | "yes":
                    return ApprovalAnswer("yes")
                case "a" | "always" if asked.always is not None:
                    return ApprovalAnswer("always")
                case "n" | "no":
                    return ApprovalAnswer("no", one_line(await self._editor.ask(_REASON)))
                case "s" if rest:
                    self._screen.block("\n".join(rest))
                    continue
            if asked.always is None:
                self._screen.line(
                    "Type y for this call, or n to refuse it. This file is asked for each time."
                )
            else:
                self._screen.line(f"Type y for this call, n to refuse it, or a for {asked.always.words}.")


async def refuse(screen: Screen, asked: AskedCall) -> ApprovalAnswer:
    """Deny a call: no user is present."""
    reason = f"it needs an approval, and nobody can be asked; --yes {approving(asked)} approves it"
    async with screen.lock:
        screen.line(f"refused {short_name(asked.call.tool)}: {reason}")
    return ApprovalAnswer("no", _UNASKED)


def _arguments(call: PendingCall) -> str:
    try:
        values = json.loads(call.arguments)
    except (ValueError, RecursionError):
        return call.arguments
    return json.dumps(values, ensure_ascii=False, indent=2)
