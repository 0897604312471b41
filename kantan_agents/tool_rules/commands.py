"""Which commands may be in a text that some shell will read: guessed generously, for deny.

No guess is complete (``$(echo r)m``, a script that was written before), so deny alone makes nothing safe:
what must not happen is best left out of allow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

NEXT = ";"
"""Stands between two commands in a list of words."""

_ENDS = re.compile(r"[;&|<>`\r\n(){}$]+")
_CONTINUED = re.compile(r"\\\r?\n")
_QUOTED = re.compile(r""""(?:\\.|[^"\\])*"?|'[^']*'?|\\[ \t]""", re.DOTALL)
_NO_LETTERS = re.compile(r"[\s;&|<>`(){}$]")
_REDIRECTION = re.compile(r"\d{0,3}(?:&>>?|<<<|<<-?|[<>]&|<>|>>|>\||[<>])[ \t]*[^\s;&|<>`()]+")

# Words in front of a command that run it or let it be run.
_BEFORE = re.compile(
    r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=.*|-.*|\d+(?:\.\d+)?[smhd]?"
    r"|!|if|then|elif|else|while|until|do|time|coproc|and|or|not|begin"
    r"|command|builtin|exec|eval|env|nohup|nice|setsid|stdbuf|timeout|sudo|doas|xargs"
    r"|sh|bash|dash|zsh|ksh|fish"
)


def readings(text: str) -> Iterator[list[str]]:
    """Yield the words of ``text``, commands parted by ``NEXT``, in each way a shell may mean it.

    With quotes as letters that may part commands and as letters that keep words together; with the names
    of files that are redirected to as commands (``<(rm x)``) and as none (``>log rm x``). The first
    reading is the plainest.
    """
    text = _CONTINUED.sub("", text)
    quoted = (text, _QUOTED.sub(lambda found: _NO_LETTERS.sub("_", found[0]), text))
    for one in dict.fromkeys((*quoted, *(_REDIRECTION.sub(" ", one) for one in quoted))):
        yield _ENDS.sub(f" {NEXT} ", without_quotes(one)).split()


def without_quotes(text: str) -> str:
    """Return ``text`` without the letters that a shell takes for none, and with continued lines joined."""
    return _CONTINUED.sub("", text).replace("'", "").replace('"', "").replace("\\", "")


def holds_command(words: list[str], command: list[str], *, more: bool) -> bool:
    """Return whether a command stands in ``words``.

    Args:
        words: A reading of a text.
        command: The plainest reading of the command.
        more: Whether further words may follow it.
    """
    begins = True
    for place, word in enumerate(words):
        if word == NEXT:
            begins = True
        elif begins:
            end = place + len(command)
            if _stands_at(place, words, command) and (more or words[end : end + 1] in ([], [NEXT])):
                return True
            begins = _BEFORE.fullmatch(word.rsplit("/", 1)[-1]) is not None
    return False


def _stands_at(place: int, words: list[str], command: list[str]) -> bool:
    if not command or not f"/{words[place]}".endswith(f"/{command[0]}"):
        return False
    return words[place + 1 : place + len(command)] == command[1:]
