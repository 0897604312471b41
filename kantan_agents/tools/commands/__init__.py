"""Parse commands that a user types, such as ``/read notes.txt``; independent of agents and of the SDK."""

from kantan_agents.tools.commands.command import Command
from kantan_agents.tools.commands.help import HELP_COMMAND, explanation, overview
from kantan_agents.tools.commands.line import (
    PREFIX,
    CommandLine,
    checked_prefix,
    kind_of,
    name_in,
    shown_name,
    split_line,
)
from kantan_agents.tools.commands.parameters import Parameter
from kantan_agents.tools.commands.quoting import command_line
from kantan_agents.tools.commands.registry import HELP, CommandRegistry, checked_aliases, unknown_command

__all__ = [
    "HELP",
    "HELP_COMMAND",
    "PREFIX",
    "Command",
    "CommandLine",
    "CommandRegistry",
    "Parameter",
    "checked_aliases",
    "checked_prefix",
    "command_line",
    "explanation",
    "kind_of",
    "name_in",
    "overview",
    "shown_name",
    "split_line",
    "unknown_command",
]
