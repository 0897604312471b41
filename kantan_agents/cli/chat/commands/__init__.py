"""The commands of a chat, by name. They come before tools of the same name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kantan_agents.cli.chat.chat import ChatCommand
from kantan_agents.cli.chat.commands.account import COST, TRACE
from kantan_agents.cli.chat.commands.agent import MODEL, RELOAD
from kantan_agents.cli.chat.commands.conversation import COMPACT, NEW, RESUME, SEARCH
from kantan_agents.cli.chat.commands.general import EXIT, HELP
from kantan_agents.cli.chat.commands.jobs import JOBS

COMMANDS: Final[Mapping[str, ChatCommand]] = {
    command.name: command
    for command in (HELP, EXIT, NEW, RESUME, SEARCH, COMPACT, MODEL, RELOAD, JOBS, COST, TRACE)
}
"""In the order of ``/help``."""
