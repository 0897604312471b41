"""``/help`` and ``/exit``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kantan_agents.cli.chat.chat import Chat, ChatCommand, EndOfChatError
from kantan_agents.tools.commands import Command, overview


async def _help(chat: Chat, words: str) -> None:
    name = words.lstrip("/")
    if not name:
        await chat.load_tools()
        chat.screen.block(_text(chat.commands.values(), chat.tools))
    elif name in chat.commands:
        command = chat.commands[name]
        chat.screen.block(f"{command.usage}: {command.meaning}")
    else:
        await chat.run_tool(f"/help {words}")


async def _exit(chat: Chat, words: str) -> None:
    del chat, words
    raise EndOfChatError


def _names(chat: Chat) -> Mapping[str, str]:
    return chat.names()


HELP: Final = ChatCommand("/help [COMMAND]", "List the commands, or explain one.", _help, _names)
EXIT: Final = ChatCommand("/exit", "End the chat; so does Ctrl-D.", _exit)


def _text(commands: Iterable[ChatCommand], own: Iterable[Command]) -> str:
    lines = [f"{command.usage}: {command.meaning}" for command in commands]
    lines.append("@FILE in a message sends a file of this folder. // sends a text that begins with /.")
    listed = list(own)
    if listed:
        # Its first line is /help, already in the list above.
        lines += ["", "Tools of the agent:", *overview(listed, "/").splitlines()[1:]]
    return "\n".join(lines)
