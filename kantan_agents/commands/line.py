"""One line of text as a person types it: a command, an escaped text, or neither."""

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
    """A command as it was typed.

    Attributes:
        name: The name behind the prefix.
        rest: Everything behind the name, white space around it left out.
    """

    name: str
    rest: str


def kind_of(text: str, prefix: str = PREFIX) -> Kind:
    """Say what a text is: a command, a text with an escaped prefix, or any other text."""
    if not text.startswith(prefix):
        return "text"
    return "escaped" if text.startswith(prefix * 2) else "command"


def split_line(text: str, prefix: str = PREFIX) -> CommandLine:
    """Split a command into its name and the rest.

    Args:
        text: What was typed; ``kind_of`` says that it is a command.
        prefix: What commands begin with.

    Raises:
        CommandSyntaxError: E55, there is no name behind the prefix, or the text holds what no text may.
    """
    name = name_in(text, prefix)
    problems = [] if name else [f"there is no name behind {prefix}"]
    if "\0" in text:
        problems.append(f"position {text.index(chr(0)) + 1} holds a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        problems.append(f"position {error.start + 1} holds half a character, which is no Unicode")
    if problems:
        raise CommandSyntaxError(
            command=f"{prefix}{shown_name(name)}", problems=problems, usage=f"{prefix}help"
        )
    return CommandLine(name, text[len(prefix) + len(name) :].strip())


def name_in(text: str, prefix: str = PREFIX) -> str:
    """Return the name that stands behind the prefix; the empty string if there is none."""
    matched = _NAME.match(text, len(prefix))
    return matched[0] if matched is not None else ""


def shown_name(name: str) -> str:
    """Return a name that somebody has typed as it may stand in a message: short, and only what shows."""
    short = name if len(name) <= _SHOWN else f"{name[: _SHOWN - 3]}..."
    return "".join(character if character.isprintable() else "?" for character in short)


def checked_prefix(prefix: object) -> str:
    """Return ``prefix`` if commands can begin with it.

    Raises:
        InvalidOptionError: E75, it is no str, empty, or holds letters, digits, quotes or white space.
    """
    if (
        isinstance(prefix, str)
        and prefix
        and prefix.isprintable()
        and not any(character.isalnum() or character.isspace() or character in "\"'" for character in prefix)
    ):
        return prefix
    reason = f"must be one or more signs such as /, no letters, digits, quotes or white space, not {prefix!r}"
    raise InvalidOptionError(option="prefix", reason=reason)
