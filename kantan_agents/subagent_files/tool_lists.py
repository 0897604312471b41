"""Splits the tool lists of subagent files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal

ALL: Final = "*"
_ALL_WORDS: Final = frozenset({ALL, "all", "all tools"})
_BLANKS: Final = (
    " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
# Latin, Chinese and Japanese, and the narrow form of the last.
_COMMA: Final = frozenset(",\uff0c\u3001\uff64")
_BLANK: Final = frozenset(_BLANKS)
_ANY: Final = _BLANK | _COMMA | frozenset(";\uff1b")

# Quotes and backticks of every kind, braces, and invisible characters.
_QUOTES: Final = "`'\"\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u201b\xab\xbb\u2039\u203a"
_WRAPPING: Final = _BLANKS + _QUOTES + "{};\u200b\u2060\ufeff"
_BULLETS: Final = frozenset({"-", "\u2013", "\u2014", "\u2022", "+"})

ToolFilter = tuple[str, ...] | Literal["*"]
"""``"*"`` for all tools, else the names; ``()`` for none."""


def split_text(text: str) -> tuple[str, ...]:
    """Split a string at commas or, without any, at white space.

    Parentheses are not split: ``Agent(a, b), Bash(git diff:*)`` has two entries.
    """
    return split_at(text, commas=_has_comma(text))


def split_items(items: Iterable[str]) -> tuple[str, ...]:
    """Split the items of a list at commas outside parentheses."""
    return _unique(entry for item in items for entry in split_at(item, commas=True))


def split_denied(items: Iterable[str]) -> tuple[str, ...]:
    """Split a list of denied tools generously, because an entry that names no tool denies nothing."""
    parts = (strip_wrapping(part) for item in items for part in _parts(item, _ANY))
    return _unique(part for part in parts if part not in _BULLETS)


def split_at(text: str, *, commas: bool) -> tuple[str, ...]:
    """Return the distinct parts between commas, or else white space, outside parentheses."""
    return _unique(part.strip() for part in _parts(text, _COMMA if commas else _BLANK))


def strip_quotes(entries: Iterable[str]) -> tuple[str, ...]:
    """Strip quotes, backticks and braces from entries."""
    return _unique(entry.strip(_WRAPPING) for entry in entries)


def strip_wrapping(part: str) -> str:
    """Strip quotes and the bracket of a whole list from an entry."""
    entry = part.strip(_WRAPPING)
    opened, closed = entry.startswith("["), entry.endswith("]")
    if opened and closed and "[" not in entry[1:]:
        return entry[1:-1].strip(_WRAPPING)
    missing = entry.count("[") - entry.count("]")
    if missing > 0 and opened:
        return entry[1:].strip(_WRAPPING)
    return entry[:-1].strip(_WRAPPING) if missing < 0 and closed else entry


def is_all(entries: Sequence[str]) -> bool:
    """Return whether the only entry is a word for all tools."""
    return len(entries) == 1 and entries[0].lower() in _ALL_WORDS


def includes_all(entries: Iterable[str]) -> bool:
    """Return whether any entry is a word for all tools."""
    return any(entry.lower() in _ALL_WORDS for entry in entries)


def intersection(first: ToolFilter, second: ToolFilter) -> ToolFilter:
    """Return the tools that both lists allow."""
    if first == ALL:
        return second
    if second == ALL:
        return first
    known = frozenset(second)
    return tuple(entry for entry in first if entry in known)


def as_text(entries: Sequence[str]) -> str | None:
    """Return the string that `split_text` splits into these entries, or None."""
    text = ", ".join(entries)
    return text if entries and split_text(text) == tuple(entries) else None


def _parts(text: str, separators: frozenset[str]) -> list[str]:
    parts, start, depth = [], 0, 0
    for index, char in enumerate(text):
        if char == "(":
            depth += 1
        elif char == ")":
            depth = max(0, depth - 1)
        elif depth == 0 and char in separators:
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return parts


def _has_comma(text: str) -> bool:
    depth = 0
    for char in text:
        if char in _COMMA and depth == 0:
            return True
        depth = depth + 1 if char == "(" else max(0, depth - 1) if char == ")" else depth
    return False


def _unique(entries: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(entry for entry in entries if entry))
