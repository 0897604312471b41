"""The slash commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kantan_agents.cli.chat.chat import ChatCommand
from kantan_agents.cli.chat.commands.account import COST, TRACE
from kantan_agents.cli.chat.commands.agent import MODEL, RELOAD
from kantan_agents.cli.chat.commands.context import CONTEXT
from kantan_agents.cli.chat.commands.conversation import COMPACT, NEW, RESUME, SEARCH
from kantan_agents.cli.chat.commands.general import EXIT, HELP
from kantan_agents.cli.chat.commands.history import HISTORY
from kantan_agents.cli.chat.commands.jobs import JOBS
from kantan_agents.cli.chat.commands.plan import PLAN
from kantan_agents.cli.chat.commands.retry import RETRY
from kantan_agents.cli.chat.commands.todos import TODOS
from kantan_agents.cli.chat.commands.undo import UNDO

COMMANDS: Final[Mapping[str, ChatCommand]] = {
    command.name: command
    for command in (
        HELP,
        EXIT,
        RETRY,
        PLAN,
        UNDO,
        TODOS,
        JOBS,
        NEW,
        RESUME,
        SEARCH,
        COMPACT,
        MODEL,
        RELOAD,
        CONTEXT,
        COST,
        TRACE,
        HISTORY,
    )
}
