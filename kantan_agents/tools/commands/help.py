"""The text of ``/help``: a list of all commands, and the explanation of one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from kantan_agents.tools.commands.command import Command
from kantan_agents.tools.commands.line import PREFIX
from kantan_agents.tools.commands.parameters import Parameter
from kantan_agents.tools.commands.registry import HELP

HELP_COMMAND = Command(
    HELP,
    "List the commands, or explain one.",
    {"type": "object", "properties": {"command": {"type": "string", "description": "Its name."}}},
)
_LINE = 100
_VALUE = 60


def overview(commands: Iterable[Command], prefix: str = PREFIX) -> str:
    """Return a list of the commands, one line each, with the usage and what the command does."""
    rows = [(HELP_COMMAND.usage(prefix), _first_line(HELP_COMMAND.description))]
    rows += [
        (_clean(command.usage(prefix)), _first_line(command.description))
        for command in sorted(commands, key=lambda command: command.name.lower())
        if command.name != HELP  # reachable only by an alias
    ]
    return "\n".join(f"{usage}: {line}" if line else usage for usage, line in rows)


def explanation(command: Command, names: Iterable[str] = (), prefix: str = PREFIX) -> str:
    """Return the usage, the description and the parameters of a command.

    Args:
        command: The command.
        names: Other names of the command.
        prefix: The prefix of commands.
    """
    parts = [_clean(command.usage(prefix))]
    description = "\n".join(_clean(line) for line in command.description.strip().splitlines())
    if description:
        parts.append(description)
    if command.parameters:
        parts.append("\n".join(f"  {_parameter(parameter)}" for parameter in command.parameters))
    others = ", ".join(f"{prefix}{_clean(name)}" for name in names)
    if others:
        parts.append(f"Also: {others}")
    return "\n\n".join(parts)


def _parameter(parameter: Parameter) -> str:
    facts = [_clean(parameter.kind)]
    if parameter.is_required:
        facts.append("required")
    elif parameter.default is not None:
        facts.append(f"default {_value(parameter.default)}")
    line = f"{_clean(parameter.name)} ({', '.join(facts)})"
    described = parameter.schema.get("description")
    return f"{line}: {_clean(described)}" if isinstance(described, str) and described.strip() else line


def _value(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return _clean(text if len(text) <= _VALUE else f"{text[: _VALUE - 3]}...")


def _first_line(description: str) -> str:
    lines = description.strip().splitlines()
    line = _clean(lines[0]) if lines else ""
    return line if len(line) <= _LINE else f"{line[: _LINE - 3].rstrip()}..."


def _clean(text: str) -> str:
    """Return one line without terminal control characters; the text may come from a server."""
    words = " ".join(text.split())
    return "".join(character for character in words if character.isprintable())
