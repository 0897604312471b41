"""The way back: arguments as a command line that reads as the same arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kantan_agents.commands.command import Command
from kantan_agents.commands.line import PREFIX
from kantan_agents.errors import CommandSyntaxError


def quoted(text: str) -> str:
    """Return a text as one piece of a command, in quotes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def command_line(command: Command, arguments: Mapping[str, Any], prefix: str = PREFIX) -> str:
    """Return the line a person would type to have a command run with these arguments.

    With a name for each argument where that says all of it, else with one JSON object.

    Args:
        command: The command.
        arguments: JSON data that fits its schema.
        prefix: What commands begin with.

    Raises:
        CommandSyntaxError: E55, the arguments do not fit the schema.
    """
    named = " ".join(f"--{name}={quoted(_text(value))}" for name, value in arguments.items())
    if _is_same(_read(command, named), arguments):
        return f"{prefix}{command.name} {named}".rstrip()
    whole = json.dumps(arguments, ensure_ascii=False)
    command.read(whole, prefix)
    return f"{prefix}{command.name} {whole}"


def _read(command: Command, rest: str) -> Any:
    if "\0" in rest:
        return None
    try:
        return command.read(rest)
    except CommandSyntaxError:
        return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_same(one: Any, other: Any) -> bool:
    # To Python, but not to JSON, True is 1.
    return one is not None and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
