"""The commands of the chat itself: what they are called, and what they do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kantan_agents.errors import KantanAgentsError
from kantan_agents.support.nearest import nearest
from kantan_agents.tools.commands import Command, overview, split_line
from kantan_agents.tools.commands.registry import unknown_command

COMMANDS: Final = {
    "help": ("/help [COMMAND]", "List the commands, or explain one."),
    "exit": ("/exit", "End the chat; so does Ctrl-D."),
    "new": ("/new", "Begin a new conversation."),
    "resume": ("/resume [ID]", "List the conversations that are kept, or go on with one."),
    "search": ("/search WORD", "Find the conversations in which a text was said."),
    "compact": ("/compact", "Replace the conversation by a summary that the model writes."),
    "model": ("/model [NAME]", "Show the model, or go on with another one."),
    "cost": ("/cost", "Show the tokens of this chat, and what they cost."),
    "trace": ("/trace [open]", "Show how to see the last answer in the traces, or open its page."),
}
"""By name: how it is typed, and what it does. They come before tools of the same name."""


def help_text(own: Iterable[Command]) -> str:
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


def unknown(line: str, own: Iterable[Command]) -> KantanAgentsError:
    """Return the error for a command that neither the chat nor the agent has."""
    name = split_line(line).name
    near = nearest(name, [*COMMANDS, *(command.name for command in own)])
    return unknown_command(name, () if near is None else (near,), "/")
