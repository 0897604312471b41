"""Distinguishes commands from other text."""

from __future__ import annotations

import re
from typing import Literal

import attrs

from kantan_agents.errors import CommandSyntaxError, InvalidOptionError

PREFIX = "/"

Kind = Literal["command", "escaped", "text"]

_NAME = re.compile(r"\S*")
_SHOWN = 80


@attrs.frozen
class CommandLine:
    """A typed command.

    Attributes:
        name: The name after the prefix.
        rest: The text after the name, stripped of white space.
    """

    name: str
    rest: str


def kind_of(text: str, prefix: str = PREFIX) -> Kind:
    """Return whether ``text`` is a command, starts with an escaped (doubled) prefix, or is other text."""
    if not text.startswith(prefix):
        return "text"
    return "escaped" if text.startswith(prefix * 2) else "command"


def split_line(text: str, prefix: str = PREFIX) -> CommandLine:
    """Split a command into its name and the rest.

    Args:
        text: The typed text; a command according to ``kind_of``.
        prefix: The prefix of commands.

    Raises:
        CommandSyntaxError: E55, no name follows the prefix, or the text has a NUL character or a lone
            surrogate.
    """
    name = name_in(text, prefix)
    problems = [] if name else [f"there is no name after {prefix}"]
    if "\0" in text:
        problems.append(f"position {text.index(chr(0)) + 1} holds a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        problems.append(f"position {error.start + 1} holds half a character, which is not valid Unicode")
    if problems:
        raise CommandSyntaxError(
            command=f"{prefix}{shown_name(name)}", problems=problems, usage=f"{prefix}help"
        )
    return CommandLine(name, text[len(prefix) + len(name) :].strip())


def name_in(text: str, prefix: str = PREFIX) -> str:
    """Return the name after the prefix, or the empty string."""
    matched = _NAME.match(text, len(prefix))
    return matched[0] if matched is not None else ""


def shown_name(name: str) -> str:
    """Return a typed name, shortened and printable, for messages."""
    short = name if len(name) <= _SHOWN else f"{name[: _SHOWN - 3]}..."
    return "".join(character if character.isprintable() else "?" for character in short)


def checked_prefix(prefix: object) -> str:
    """Return ``prefix``; E75 unless it is a non-empty str without letters, digits, quotes or white space."""
    if (
        isinstance(prefix, str)
        and prefix
        and prefix.isprintable()
        and not any(character.isalnum() or character.isspace() or character in "\"'" for character in prefix)
    ):
        return prefix
    reason = (
        f"must be one or more characters such as /, no letters, digits, quotes or white space, not {prefix!r}"
    )
    raise InvalidOptionError(option="prefix", reason=reason)
