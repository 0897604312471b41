"""Carries out each line of the user."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Optional

import anyio.to_thread
import attrs

from kantan_agents.cli.chat.changed_files import ReportedChanges
from kantan_agents.cli.chat.conversations import Conversations
from kantan_agents.cli.chat.costs import Costs
from kantan_agents.cli.chat.input_history import InputHistory
from kantan_agents.cli.chat.jobs import Jobs
from kantan_agents.cli.chat.kept_conversation import KeptConversation, Outcome
from kantan_agents.cli.chat.mentions import ChatMessage, read_message
from kantan_agents.cli.chat.page import ChatPage
from kantan_agents.cli.chat.plan_mode import PlanMode
from kantan_agents.cli.chat.retry import RETRY, may_pass
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.chat.source import AgentSource, slash_commands_of
from kantan_agents.cli.chat.steps import show_steps, steps_of
from kantan_agents.cli.chat.talk import Talk
from kantan_agents.cli.chat.undo.undo import Undo
from kantan_agents.cli.terminal.console import LABEL, NOTICE
from kantan_agents.cli.terminal.failures import describe
from kantan_agents.cli.terminal.plain import whole
from kantan_agents.cli.terminal.show_quantities import counted
from kantan_agents.errors import ConversationsFileError, UnknownCommandError
from kantan_agents.support.nearest import nearest
from kantan_agents.tools.commands import PREFIX, Command, kind_of, split_line
from kantan_agents.tools.commands.registry import unknown_command

_LISTED: Final = 20
_RECALLED: Final = 2000


class EndOfChatError(Exception):
    """The user typed ``/exit``."""


@attrs.frozen(eq=False)
class ChatCommand:
    """A slash command, such as ``/resume [ID]``."""

    usage: str
    meaning: str
    run: Callable[[Chat, str], Awaitable[None]]
    choices: Optional[Callable[[Chat], Mapping[str, str]]] = None  # noqa: UP045

    @property
    def name(self) -> str:
        """The word after ``/``."""
        return self.usage[1:].partition(" ")[0]


@attrs.define(eq=False, kw_only=True)
class Chat:
    """A chat; its ``commands`` precede tools of the same name."""

    talk: Talk
    screen: Screen
    commands: Mapping[str, ChatCommand]
    folder: Path
    source: AgentSource
    plan: PlanMode
    jobs: Jobs
    undo: Undo
    history: InputHistory
    costs: Costs
    store: Conversations | None
    page: ChatPage | None
    changes: ReportedChanges | None
    tools: list[Command] = attrs.field(factory=list, init=False)
    recent: Mapping[str, str] = attrs.field(factory=dict, init=False)

    async def handle(self, typed: str) -> bool:
        """Carry out an input; return whether it succeeded. Raises EndOfChatError."""
        try:
            await self._handle(typed)
            await self._report_changes()
        except EndOfChatError:
            raise
        except Exception as error:  # noqa: BLE001 - the conversation continues after any error
            can_retry = may_pass(error) and (kind_of(typed) != "command" or typed.startswith(RETRY))
            self.screen.error(describe(error) + (f" ({RETRY} tries again)" if can_retry else ""))
            return False
        return True

    async def _report_changes(self) -> None:
        if self.changes is not None:
            await self.changes.report()

    async def answer(self, question: str) -> Outcome:
        """Send a question unchanged, even with a leading ``/``."""
        outcome: Outcome = "failed"
        try:
            message = ChatMessage({"role": "user", "content": whole(question)})
            outcome = await self.talk.say(message, question)
            await self._report_changes()
        except Exception as error:  # noqa: BLE001 - the next question may be answered
            self.screen.error(describe(error))
        return outcome

    async def _say(self, text: str) -> None:
        message = await anyio.to_thread.run_sync(partial(read_message, text, self.folder))
        for note in message.notes:
            self.screen.line(note, LABEL)
        if await self.talk.say(message, text) == "interrupted":
            self.screen.line("interrupted", NOTICE)

    async def load_tools(self) -> None:
        """Find the tools that the user may run."""
        slash_commands = slash_commands_of(self.talk.agent)
        if slash_commands is None:
            self.tools = []
            return
        found = await slash_commands.commands_of(self.talk.agent, self.talk.conversation.context)
        self.tools = [command for command in found if command.name not in self.commands]

    async def load_recent(self) -> None:
        """Read stored conversations for completion."""
        if self.store is not None:
            with suppress(ConversationsFileError):  # the next turn shows the problem
                listed = await anyio.to_thread.run_sync(self.store.newest, _LISTED)
                self.recent = {one.id: one.title for one in listed}

    def names(self) -> Mapping[str, str]:
        """Return all commands, each with its meaning."""
        tools = {command.name: command.description for command in self.tools}
        return {**{name: command.meaning for name, command in self.commands.items()}, **tools}

    async def _handle(self, typed: str) -> None:
        if not typed.strip():
            return
        kind = kind_of(typed)
        if kind == "text":
            await self._say(typed)
        elif kind == "escaped":
            await self._say(typed[1:])
        else:
            await self._command(typed)

    async def _command(self, typed: str) -> None:
        line = split_line(typed)
        command = self.commands.get("exit" if line.name == "quit" else line.name)
        if command is None:
            await self.run_tool(typed)
        else:
            await command.run(self, line.rest)

    async def run_tool(self, typed: str) -> None:
        """Run a tool, as in ``/read notes.txt``."""
        if slash_commands_of(self.talk.agent) is None:
            raise self._unknown(split_line(typed).name)
        try:
            outcome = await self.talk.command(typed)
        except UnknownCommandError as error:
            raise self._unknown(error.name, error.nearest) from error
        if outcome == "interrupted":
            self.screen.line("interrupted", NOTICE)

    def _unknown(self, name: str, of_agent: Iterable[str] = ()) -> UnknownCommandError:
        near = nearest(name, list(self.commands))
        names = dict.fromkeys(of_agent if near is None else (near, *of_agent))
        return unknown_command(name, tuple(names), PREFIX)

    def go_on_with(self, kept: KeptConversation) -> None:
        """Resume a stored conversation."""
        self.talk.resume(kept)
        self.jobs.go_on_after(kept.turns)
        last = next((turn for turn in reversed(kept.turns) if turn.kind != "note"), kept.turns[-1])
        if kept.agent != self.talk.agent.name:
            self.screen.line(f"It was begun with the agent {kept.agent}.", NOTICE)
        self.screen.line(f"{kept.id}: {counted(len(kept.turns), 'turn')}, the last:", LABEL)
        self.screen.line(f"> {last.question}", LABEL)
        answer = last.answer if len(last.answer) <= _RECALLED else f"... {last.answer[-_RECALLED:]}"
        if answer:
            self.screen.block(answer)
        if last.outcome != "finished":
            state = {"open": "was not finished", "failed": "failed"}.get(last.outcome, "was interrupted")
            self.screen.line(f"This answer {state}.", NOTICE)
        if steps := steps_of(kept):
            show_steps(steps, self.screen)
