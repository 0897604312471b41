"""Background commands of a conversation."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from typing import Final

from kantan_agents.cli.chat.kept_conversation import ChatTurn
from kantan_agents.cli.chat.mentions import NOTE, ChatMessage
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.terminal.console import LABEL, NOTICE, plain
from kantan_agents.cli.terminal.plain import one_line, shortened
from kantan_agents.cli.terminal.show_quantities import duration_text
from kantan_agents.core.items import is_result
from kantan_agents.toolkit.shell import BackgroundShells
from kantan_agents.toolkit.shell.descriptions import state_of
from kantan_agents.toolkit.shell.shells import BackgroundShell

_COMMAND: Final = 60
_ID: Final = re.compile(r"\bbash_(\d{1,9})\b")


class Jobs:
    """The background commands of a conversation."""

    def __init__(self, screen: Screen) -> None:
        self.shells = BackgroundShells()
        self._screen = screen
        self._reported: set[str] = set()
        self._said: object = None

    def report(self, moment: object) -> None:
        """Report ended commands since the last call.

        Repeat the number of running ones when ``moment`` changes.
        """
        self._report_ended()
        running = [shell.id for shell in self.shells.listed() if not shell.command.is_over]
        if running and self._said != (moment, running):
            are = "command is" if len(running) == 1 else "commands are"
            self._screen.line(f"{len(running)} {are} running in the background: /jobs", LABEL)
        self._said = moment, running

    def go_on_after(self, turns: Iterable[ChatTurn]) -> None:
        """Reserve the command ids of these turns."""
        results = (str(item.get("output")) for turn in turns for item in turn.items if is_result(item))
        self.shells.skip(max((int(number) for text in results for number in _ID.findall(text)), default=0))

    def remind(self) -> None:
        """Let the next report repeat the running commands."""
        self._said = None

    def with_news(self, message: ChatMessage) -> ChatMessage:
        """Add a note about ended commands unknown to the model."""
        notes = []
        for shell in self.shells.listed():
            if shell.command.is_over and not shell.is_known_to_end:
                shell.is_known_to_end = True
                how = "stopped by the user" if shell.is_stopped else _state(shell)
                # No output of a command: the note is part of the user's message.
                notes.append(f"{shell.id} has ended ({how}).")
        if not notes:
            return message
        return message.with_text(NOTE.format(" ".join([*notes, "BashOutput says more."])))

    def choices(self) -> dict[str, str]:
        """Return the ids, each with its command."""
        return {shell.id: shell.line for shell in self.shells.listed()}

    def show_all(self) -> None:
        """Show each command's last line."""
        listed = self.shells.listed()
        if not listed:
            self._screen.line("No command is in the background.")
        for shell in listed:
            last = one_line(_latest(shell).rstrip().rpartition("\n")[2])
            command = shortened(shell.line, _COMMAND // 2)
            self._screen.line(plain(f"{shell.id}  {_state(shell)}  {_time(shell)}  {command}  | {last}"))

    def show(self, shell_id: str) -> None:
        """Show a command's output; E169 if unknown."""
        shell = self.shells.get(shell_id)
        self._screen.block(f"{shell.line}\n{_time(shell)}: {state_of(shell.command)}", LABEL)
        self._screen.block(_latest(shell).rstrip() or "No output.")

    async def stop(self, shell_id: str) -> None:
        """End a command; E169 for an unknown id."""
        shell = self.shells.get(shell_id)
        if shell.command.is_over:
            self._screen.line(f"{shell.id} had already ended.")
            return
        shell.is_stopped = True
        await shell.command.killed()
        self._report_ended()

    async def end(self) -> None:
        """End and list all commands."""
        self._report_ended()
        running = [shell for shell in self.shells.listed() if not shell.command.is_over]
        await self.shells.end()
        for shell in running:
            self._say_end(shell, "is ended with the conversation")

    def _report_ended(self) -> None:
        for shell in self.shells.listed():
            if shell.command.is_over and shell.id not in self._reported:
                self._reported.add(shell.id)
                self._say_end(shell, "has ended")

    def _say_end(self, shell: BackgroundShell, what: str) -> None:
        # The command comes last, so that none of it is mistaken for its state.
        state = one_line(state_of(shell.command))
        self._screen.block(f"{shell.id} {what}. {state} It was: {shortened(shell.line, _COMMAND)}", NOTICE)


def _latest(shell: BackgroundShell) -> str:
    return "" if shell.command.latest is None else shell.command.latest.text()


def _state(shell: BackgroundShell) -> str:
    ending = shell.command.ending
    if not shell.command.is_over:
        return "running"
    return "killed" if ending is None or ending.code is None else f"exit code {ending.code}"


def _time(shell: BackgroundShell) -> str:
    return duration_text((shell.command.ended_at or time.monotonic()) - shell.command.started_at)
