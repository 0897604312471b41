"""The entry form ``Tool(param pattern)`` in allow and deny: some calls of a tool instead of all.

``Bash(git status)`` matches exactly that call, ``Bash(git:*)`` every call that begins with the word ``git``,
``Bash(*)`` any call. There is no other wildcard: an entry that only looks like a pattern is refused, so that
it does not silently match nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

import attrs

from kantan_agents.tool_rules.commands import SEPARATOR, holds_command, readings, without_quotes

_FORM = re.compile(r"(?P<tool>[^()]+)\((?P<argument>.*)\)", re.DOTALL)
_ANY = "*"
_PREFIX = ":*"

# Characters that chain, redirect or nest commands in sh, bash, zsh, fish, PowerShell or cmd. They count
# within quotes as well: the shell is unknown, and a quote in one shell is an ordinary character in another.
_CHAINS = re.compile(r"[;&|<>`\r\n()]")
_EXPANSION = "${"


Fold = Callable[[str], str]


@attrs.frozen(slots=False)
class CallPattern:
    """One ``Tool(param pattern)`` entry.

    Attributes:
        entry: The entry as the user wrote it.
        tool: Name of the tool, possibly a glob pattern.
        argument: The value that the matched parameter must equal or begin with; repeated blanks are one.
        form: ``"any"``, ``"prefix"`` or ``"exact"``.
    """

    entry: str
    tool: str
    argument: str
    form: str

    def grants(self, values: list[str], fold: Fold | None = None) -> bool:
        """Return whether all ``values`` are covered; a prefix never covers a chained command.

        Args:
            values: The values of the parameter in the call.
            fold: Maps equivalent values to the same value.
        """
        return bool(values) and all(
            self._covers(value) or (fold is not None and self._is_equivalent_to(value, fold))
            for value in values
        )

    def denies(self, values: list[str], fold: Fold | None = None) -> bool:
        """Return whether one of ``values``, or a command contained in one, is covered.

        Several values may also be the words of one command, so they are checked joined as well.

        Args:
            values: The values of the parameter in the call.
            fold: Maps equivalent values to the same value.
        """
        if fold is not None and any(self._is_equivalent_to(value, fold) for value in values):
            return True
        whole = [" ".join(values)] if len(values) > 1 else []
        return any(self._covers(value) or self._is_contained_in(value) for value in [*values, *whole])

    def _is_equivalent_to(self, value: str, fold: Fold) -> bool:
        return self.form == "exact" and fold(value) == fold(self.argument)

    def _covers(self, value: str) -> bool:
        if self.form == "any":
            return True
        words = _spaced(value)
        if self.form == "exact":
            return words == self.argument
        begins = words == self.argument or words.startswith(f"{self.argument} ")
        return begins and not _is_chained(words)

    def _is_contained_in(self, value: str) -> bool:
        if not self._words or self._words[0] not in without_quotes(value):  # the usual case, and quick
            return False
        return any(holds_command(words, self._words, more=self.form == "prefix") for words in _read(value))

    @cached_property
    def _words(self) -> list[str]:
        words = next(readings(self.argument))
        return [word for place, word in enumerate(words) if word != SEPARATOR or 0 < place < len(words) - 1]


@lru_cache(maxsize=8)
def _read(value: str) -> tuple[list[str], ...]:
    # Many entries are matched with the same command.
    return tuple(readings(value))


def is_call_pattern(entry: str) -> bool:
    """Return whether an entry of allow or deny is meant as ``Tool(param pattern)``."""
    return "(" in entry or ")" in entry


def parse_call_pattern(entry: str) -> CallPattern:
    """Read ``Tool(param pattern)``.

    Raises:
        ValueError: The entry is not of this form; the message describes the mistake.
    """
    match = _FORM.fullmatch(entry)
    if match is None:
        raise ValueError(f"{entry!r} is neither a tool name nor Tool(param pattern)")
    tool, argument = match["tool"].strip(), _spaced(match["argument"])
    form = "exact"
    if argument == _ANY:
        form = "any"
    elif argument.endswith(_PREFIX):
        form, argument = "prefix", argument[: -len(_PREFIX)].rstrip()
    if not tool or not argument:
        raise ValueError(f"{entry!r} must name a tool and, in parentheses, what its call looks like")
    if form != "any" and _ANY in argument:
        raise ValueError(
            f"{entry!r}: only a final :* matches more words; for anything else write params with a pattern"
        )
    if form == "prefix" and _is_chained(argument):
        raise ValueError(f"{entry!r}: a prefix covers no chained command, so it cannot hold one")
    return CallPattern(entry, tool, argument, form)


def texts_to_match(value: Any) -> list[str] | None:
    """Return the texts to match a pattern with; None if the parameter holds no text.

    A list, such as the commands of a shell tool, is matched item by item.
    """
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return value
    return None


def _is_chained(text: str) -> bool:
    return _EXPANSION in text or _CHAINS.search(text) is not None


def _spaced(text: str) -> str:
    # To a shell, white space other than blanks is an ordinary character or ends a command.
    return " ".join(filter(None, text.strip(" \t\n").replace("\t", " ").split(" ")))
