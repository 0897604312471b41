"""Finds the commands that a text may contain for some shell; errs on the side of finding too many, for deny.

It cannot find every command (``$(echo r)m``, a script written earlier), so deny alone is not safe. Commands
that must not run should not be in allow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

SEPARATOR = ";"
"""Separates two commands in a list of words."""

_ENDS = re.compile(r"[;&|<>`\r\n(){}$]+")
_CONTINUED = re.compile(r"\\\r?\n")
_QUOTED = re.compile(r""""(?:\\.|[^"\\])*"?|'[^']*'?|\\[ \t]""", re.DOTALL)
_NO_LETTERS = re.compile(r"[\s;&|<>`(){}$]")
_REDIRECTION = re.compile(r"\d{0,3}(?:&>>?|<<<|<<-?|[<>]&|<>|>>|>\||[<>])[ \t]*[^\s;&|<>`()]+")

# Words that may precede a command which still runs.
_BEFORE = re.compile(
    r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=.*|-.*|\d+(?:\.\d+)?[smhd]?"
    r"|!|if|then|elif|else|while|until|do|time|coproc|and|or|not|begin"
    r"|command|builtin|exec|eval|env|nohup|nice|setsid|stdbuf|timeout|sudo|doas|xargs"
    r"|sh|bash|dash|zsh|ksh|fish"
)


def readings(text: str) -> Iterator[list[str]]:
    """Yield the words of ``text``, with ``SEPARATOR`` between commands, for each way a shell may read it.

    Quotes either are ordinary characters or keep words together. Targets of redirections either are commands
    (``<(rm x)``) or are left out (``>log rm x``). The first reading is the simplest.
    """
    text = _CONTINUED.sub("", text)
    quoted = (text, _QUOTED.sub(lambda found: _NO_LETTERS.sub("_", found[0]), text))
    for one in dict.fromkeys((*quoted, *(_REDIRECTION.sub(" ", one) for one in quoted))):
        yield _ENDS.sub(f" {SEPARATOR} ", without_quotes(one)).split()


def without_quotes(text: str) -> str:
    """Return ``text`` without quotes and backslashes, and with continued lines joined."""
    return _CONTINUED.sub("", text).replace("'", "").replace('"', "").replace("\\", "")


def holds_command(words: list[str], command: list[str], *, more: bool) -> bool:
    """Return whether ``words`` contain a command.

    Args:
        words: A reading of a text.
        command: The simplest reading of the command.
        more: Whether further words may follow the command.
    """
    begins = True
    for place, word in enumerate(words):
        if word == SEPARATOR:
            begins = True
        elif begins:
            end = place + len(command)
            if _is_at(place, words, command) and (more or words[end : end + 1] in ([], [SEPARATOR])):
                return True
            begins = _BEFORE.fullmatch(word.rsplit("/", 1)[-1]) is not None
    return False


def _is_at(place: int, words: list[str], command: list[str]) -> bool:
    if not command or not f"/{words[place]}".endswith(f"/{command[0]}"):
        return False
    return words[place + 1 : place + len(command)] == command[1:]
