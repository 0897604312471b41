"""``Chat``: carries out what a person types: a message, a command, or one of the agent's tools."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio.to_thread
import attrs

from kantan_agents.agent import Agent
from kantan_agents.cli.chat.changed_files import ReportedChanges
from kantan_agents.cli.chat.conversations import Conversations
from kantan_agents.cli.chat.costs import Costs
from kantan_agents.cli.chat.kept_conversation import KeptConversation, ListedConversation, Outcome
from kantan_agents.cli.chat.mentions import ChatMessage, read_message
from kantan_agents.cli.chat.page import ChatPage
from kantan_agents.cli.chat.screen import Screen
from kantan_agents.cli.chat.source import MakeAgent, slash_commands_of
from kantan_agents.cli.chat.talk import Talk
from kantan_agents.cli.terminal.console import LABEL, NOTICE
from kantan_agents.cli.terminal.failures import describe
from kantan_agents.cli.terminal.plain import whole
from kantan_agents.cli.terminal.show_quantities import counted, short_time
from kantan_agents.errors import ChatCommandError, ConversationsFileError, KantanAgentsError
from kantan_agents.support.nearest import nearest
from kantan_agents.tools.commands import Command, kind_of, overview, split_line
from kantan_agents.tools.commands.registry import unknown_command

COMMANDS: Final = {
    "help": ("/help [COMMAND]", "List the commands, or explain one."),
    "exit": ("/exit", "End the chat; so does Ctrl-D."),
    "new": ("/new", "Begin a new conversation."),
    "resume": ("/resume [ID]", "List the conversations that are kept, or go on with one."),
    "search": ("/search WORD", "Find the conversations in which a text was said."),
    "compact": ("/compact", "Replace the conversation by a summary that the model writes."),
    "model": ("/model [NAME]", "Show the model, or go on with another one."),
    "reload": ("/reload", "Use the agents and skills as their files are now, after a change that was shown."),
    "cost": ("/cost", "Show the tokens of this chat, and what they cost."),
    "trace": ("/trace [open]", "Show how to see the last answer in the traces, or open its page."),
}
"""By name: how it is typed, and what it does. They come before tools of the same name."""

_LISTED: Final = 20
_RECALLED: Final = 2000


class EndOfChatError(Exception):
    """The person has typed ``/exit``."""


@attrs.define(eq=False)
class Chat:
    """A chat: the conversation, and what its commands need.

    Attributes:
        talk: The conversation.
        make_agent: Makes the agent with another model.
        screen: Where everything is shown.
        costs: The tokens so far.
        store: The kept conversations; None if none are kept.
        page: Shows recorded answers; None if they are not recorded.
        folder: The working folder, whose files may be sent.
        changes: Reports changes of the files that the agent was made from; None if it has none.
        model: The model that was chosen last, and whether it also replaces one in the agent's file.
        tools: The agent's tools that the person may run, as far as they were found.
        recent: The newest kept conversations, each with its title.
    """

    talk: Talk
    make_agent: MakeAgent
    screen: Screen
    costs: Costs
    store: Conversations | None
    page: ChatPage | None
    folder: Path
    changes: ReportedChanges | None = None
    model: tuple[str | None, bool] = (None, False)
    tools: list[Command] = attrs.field(factory=list)
    recent: Mapping[str, str] = attrs.field(factory=dict)

    async def handle(self, typed: str) -> bool:
        """Carry out what was typed, and show errors; return whether it succeeded.

        Raises:
            EndOfChatError: It was ``/exit``.
        """
        try:
            await self._handle(typed)
            await self._report_changes()
        except EndOfChatError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever fails, the conversation goes on
            self.screen.error(describe(error))
            return False
        return True

    async def _report_changes(self) -> None:
        if self.changes is not None:
            await self.changes.report()

    async def answer(self, question: str) -> Outcome:
        """Send a question as it is, whatever it begins with, and show errors; return how the answer ended."""
        outcome: Outcome = "failed"
        try:
            outcome = await self.talk.say(ChatMessage({"role": "user", "content": whole(question)}), question)
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
        """Find the tools of the agent that the person may run."""
        slash_commands = slash_commands_of(self.talk.agent)
        if slash_commands is None:
            self.tools = []
            return
        found = await slash_commands.commands_of(self.talk.agent, self.talk.context)
        self.tools = [command for command in found if command.name not in COMMANDS]

    async def load_recent(self) -> None:
        """Read which conversations there are, for completion."""
        if self.store is not None:
            with suppress(ConversationsFileError):  # the next turn says what is wrong with the file
                listed = await anyio.to_thread.run_sync(self.store.newest, _LISTED)
                self.recent = {one.id: one.title for one in listed}

    def names(self) -> Mapping[str, str]:
        """Return all commands, each with what it does."""
        tools = {command.name: command.description for command in self.tools}
        return {**{name: meaning for name, (_, meaning) in COMMANDS.items()}, **tools}

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
        words = line.rest
        match line.name:
            case "exit" | "quit":
                raise EndOfChatError
            case "help" if words.lstrip("/") in ("", *COMMANDS):
                await self._help(words.lstrip("/"))
            case "new":
                self.talk.renew()
                self.screen.line("A new conversation.", LABEL)
            case "resume" | "search":
                await (self._resume if line.name == "resume" else self._search)(words)
            case "compact":
                await self.talk.compact()
            case "model":
                await self._model(words)
            case "reload":
                await self._reload()
            case "cost":
                self.screen.block("\n".join(self.costs.lines()))
            case "trace":
                await self._trace(words)
            case _:
                await self._tool(typed)

    async def _tool(self, typed: str) -> None:
        if slash_commands_of(self.talk.agent) is None:
            raise _unknown(typed, ())
        if await self.talk.command(typed) == "interrupted":
            self.screen.line("interrupted", NOTICE)

    async def _help(self, name: str) -> None:
        if name:
            self.screen.block(": ".join(COMMANDS[name]))
            return
        await self.load_tools()
        self.screen.block(_help_text(self.tools))

    async def _model(self, name: str) -> None:
        if name:
            agent: Agent[Any] = await anyio.to_thread.run_sync(partial(self.make_agent, name, replace=True))
            await anyio.to_thread.run_sync(agent.check_model)
            self.talk.change_agent(agent)
            self.model = (name, True)
        self.screen.line(f"model: {model_of(self.talk.agent)}")

    async def _reload(self) -> None:
        if self.changes is None:
            raise ChatCommandError(command="/reload", reason="this agent is not from a file")
        if await self.changes.take():
            self.talk.forget_approvals()
            model, replaces = self.model
            make = partial(self.make_agent, model, replace=replaces)
            self.talk.change_agent(await anyio.to_thread.run_sync(make))

    def _kept(self, command: str) -> Conversations:
        if self.store is None:
            raise ChatCommandError(command=command, reason="this chat was started with --no-save")
        return self.store

    async def _resume(self, wanted: str) -> None:
        store = self._kept("/resume")
        if not wanted:
            self._list(await anyio.to_thread.run_sync(store.newest, _LISTED))
            return
        self.go_on_with(await anyio.to_thread.run_sync(store.load, wanted))

    def go_on_with(self, kept: KeptConversation) -> None:
        """Go on with a kept conversation, and show its newest turn."""
        self.talk.resume(kept)
        last = kept.turns[-1]
        if kept.agent != self.talk.agent.name:
            self.screen.line(f"It was begun with the agent {kept.agent}.", NOTICE)
        self.screen.line(f"{kept.id}: {counted(len(kept.turns), 'turn')}, the last:", LABEL)
        self.screen.line(f"> {last.question}", LABEL)
        answer = last.answer if len(last.answer) <= _RECALLED else f"... {last.answer[-_RECALLED:]}"
        if answer:
            self.screen.block(answer)
        if last.outcome != "finished":
            state = "not finished" if last.outcome == "open" else last.outcome
            self.screen.line(f"This answer was {state}.", NOTICE)

    async def _search(self, words: str) -> None:
        if not words:
            raise ChatCommandError(command="/search", reason="name a word: /search WORD")
        store = self._kept("/search")
        self._list(await anyio.to_thread.run_sync(store.search, words, _LISTED))

    def _list(self, listed: list[ListedConversation]) -> None:
        if not listed:
            self.screen.line("None.")
        for one in listed:
            when = short_time(datetime.fromtimestamp(one.changed_at, timezone.utc))
            self.screen.line(f"{one.id}  {when}  {counted(one.turns, 'turn')}  {one.found or one.title}")

    async def _trace(self, words: str) -> None:
        if self.page is None:
            raise ChatCommandError(command="/trace", reason="the answers of this chat are not recorded")
        if self.talk.trace_id is None:
            raise ChatCommandError(command="/trace", reason="there is no answer yet")
        if words not in ("", "open"):
            raise ChatCommandError(command="/trace", reason=f"it is /trace or /trace open, not {words!r}")
        if words:
            self.screen.block(await self.page.open(self.talk.trace_id))
        else:
            self.screen.block(shlex.join(self.page.command(self.talk.trace_id)))


def model_of(agent: Agent[Any]) -> str:
    """Return the name of the model of an agent, as far as it has one."""
    model = agent.inherited["model"]
    if model is None or isinstance(model, str):
        return model or "the default of the SDK"
    return str(getattr(model, "model", None) or type(model).__name__)


def _help_text(own: Iterable[Command]) -> str:
    """Return the list of all commands.

    Args:
        own: The commands of the agent, without those that the chat has a command of the same name for.
    """
    lines = [f"{usage}: {meaning}" for usage, meaning in COMMANDS.values()]
    lines.append("@FILE in a message sends a file of this folder. // sends a text that begins with /.")
    listed = list(own)
    if listed:
        # The first line of it is /help, which is in the list above.
        lines += ["", "Tools of the agent:", *overview(listed, "/").splitlines()[1:]]
    return "\n".join(lines)


def _unknown(line: str, own: Iterable[Command]) -> KantanAgentsError:
    """Return the error for a command that neither the chat nor the agent has."""
    name = split_line(line).name
    near = nearest(name, [*COMMANDS, *(command.name for command in own)])
    return unknown_command(name, () if near is None else (near,), "/")
