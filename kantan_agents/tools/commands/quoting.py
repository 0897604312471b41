"""Writes command lines, the inverse of parsing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kantan_agents.errors import CommandSyntaxError
from kantan_agents.tools.commands.command import Command
from kantan_agents.tools.commands.line import PREFIX


def quoted(text: str) -> str:
    """Quote ``text`` as one token."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def command_line(command: Command, arguments: Mapping[str, Any], prefix: str = PREFIX) -> str:
    """Return the command line that runs a command with these arguments.

    Each argument is written with its name. If that would not be parsed to the same arguments, they are
    written as one JSON object.

    Args:
        command: The command.
        arguments: JSON data that is valid for the command's schema.
        prefix: The prefix of commands.

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
    # Compared as JSON, because True equals 1 in Python.
    return one is not None and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
