"""Finds the commands that a text may contain for some shell; errs on the side of finding too many, for deny.

It cannot find every command (``$(echo r)m``, a script written earlier), so deny alone is not safe. Commands
that must not run should not be in allow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from kantan_agents.tool_rules.wrappers import (
    AT_BEGIN,
    GIT,
    SEPARATOR,
    Place,
    begins_command,
    is_option,
    places_after,
)

_ENDS = re.compile(r"[;&|<>`\r\n(){}$]+")
_CONTINUED = re.compile(r"\\\r?\n")
_DOLLAR_OF_QUOTE = re.compile(r"""\$(?=["'])""")
_QUOTED = re.compile(r""""(?:\\.|[^"\\])*"?|'[^']*'?|\\[ \t]""", re.DOTALL)
_NO_LETTERS = re.compile(r"[\s;&|<>`(){}$]")
_REDIRECTION = re.compile(r"\d{0,3}(?:&>>?|<<<|<<-?|[<>]&|<>|>>|>\||[<>])[ \t]*[^\s;&|<>`()]+")
_VARIABLE = re.compile(r"\$(?:\{[^{}\s]*\}|[A-Za-z_]\w*|[0-9@*#?!$-])")
# A part of a word: a variable, the output of a command, `{}` of find and xargs, a sign behind a backslash.
_PART = re.compile(rf"{_VARIABLE.pattern}|\$\([^()]*\)|`[^`]*`|\{{\}}|\\[;&|<>()'\"]")
# The command of an option in the same word: `su -c'git push'`, `env --split-string='git push'`.
_ATTACHED = re.compile(r"(?<!\S)(-[A-Za-z]*?[cSxX]|--(?:(?:session-)?command|split-string|exec)=)(?=\S)")


def readings(text: str) -> Iterator[Reading]:
    """Yield each way in which a shell may read ``text``.

    Quotes either are ordinary characters or keep words together. Targets of redirections either are commands
    (``<(rm x)``) or are left out (``>log rm x``). Variables separate commands, are empty, or are part of a
    word, as are outputs of commands. The first reading is the simplest.
    """
    texts = [_in_one_line(text)]
    texts += [_QUOTED.sub(lambda found: _NO_LETTERS.sub("_", found[0]), one) for one in texts]
    texts += [_REDIRECTION.sub(" ", one) for one in texts]
    texts += [part.sub(to, one) for one in texts for part, to in ((_VARIABLE, " "), (_PART, "_"))]
    texts = [without_quotes(one) for one in dict.fromkeys(texts)]
    for one in dict.fromkeys((*texts, *(_ATTACHED.sub(r"\1 ", one) for one in texts))):
        yield Reading.make(_ENDS.sub(f" {SEPARATOR} ", one).split())


def without_quotes(text: str) -> str:
    """Return ``text`` without quotes and backslashes, and with continued lines joined."""
    return _in_one_line(text).replace("'", "").replace('"', "").replace("\\", "")


def _in_one_line(text: str) -> str:
    # `$'push'` and `$"push"` are quotes too.
    return _DOLLAR_OF_QUOTE.sub("", _CONTINUED.sub("", text))


class Reading(NamedTuple):
    """One way to read a text.

    Attributes:
        words: The words, with ``SEPARATOR`` between commands.
        starts: The words at which a command may begin, by their index; whether other words may follow such a
            command, because it is in a text as in ``trap 'git push' EXIT``.
    """

    words: list[str]
    starts: dict[int, bool]

    @classmethod
    def make(cls, words: list[str]) -> Reading:
        """Return the reading with these words."""
        places: frozenset[Place] = AT_BEGIN
        starts: dict[int, bool] = {}
        for index, word in enumerate(words):
            if word == SEPARATOR:
                places = AT_BEGIN
            elif places:
                if (is_text := begins_command(places)) is not None:
                    starts[index] = is_text
                places = places_after(places, word)
        return cls(words, starts)

    def holds(self, command: list[str], *, more: bool) -> bool:
        """Return whether the words contain a command; options may precede each of its words but the first.

        Args:
            command: The words of the simplest reading of the command.
            more: Whether further words may follow the command.
        """
        begins = [place for place in self.starts if f"/{self.words[place]}".endswith(f"/{command[0]}")]
        words = [*self.words, SEPARATOR]
        parts: set[_Part] = set()
        for begin, end in pairwise((*begins, len(words))):
            for place in range(begin, end):
                word = words[place]
                if any(part.length == len(command) and (part.more or word == SEPARATOR) for part in parts):
                    return True
                parts = {longer for part in parts for longer in _longer(part, word, command)}
                if place == begin:
                    parts.add(_Part(1, False, more or self.starts[begin]))
                if not parts:
                    break
        return False


class _Part(NamedTuple):
    """The first words of a command that were found.

    Attributes:
        length: Number of words.
        is_value: Whether the value of an option may follow.
        more: Whether further words may follow the command.
    """

    length: int
    is_value: bool
    more: bool


def _longer(part: _Part, word: str, command: list[str]) -> Iterator[_Part]:
    if part.length == len(command):
        return
    if word == command[part.length]:
        yield part._replace(length=part.length + 1, is_value=False)
    if word == SEPARATOR:
        return
    if word.startswith("-"):
        yield part._replace(is_value=_takes_value(word, command[: part.length]))
    elif part.is_value:
        yield part._replace(is_value=False)


def _takes_value(option: str, before: list[str]) -> bool:
    if [word.rsplit("/", 1)[-1] for word in before] == list(GIT.names):
        return is_option(option, GIT.valued)
    return "=" not in option  # unknown
