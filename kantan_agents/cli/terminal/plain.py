"""Text from outside on its way to a terminal: what a model or a provider says is only ever text."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Callable
from typing import Any

MAX_LINE = 500

# They show nothing themselves and turn the direction of writing, which makes one text look like another. What
# joins the parts of an emoji or of a Persian word is none of them.
_DIRECTIONS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_TURNS = re.compile(f"[{_DIRECTIONS}]")
# JSON escapes the control characters of ASCII except this one; some terminals obey the others as well, and
# some readers take the two separators for line ends.
_UNESCAPED = re.compile(f"[\x7f-\x9f\u2028\u2029{_DIRECTIONS}]")
_NOT_ASCII = re.compile("[^\x00-\x7e]")
_LAST_OF_FOUR_DIGITS = 0xFFFF
_HALF_A_PAIR = re.compile("[\ud800-\udfff]")


def printable(text: str) -> str:
    """Return ``text`` without what steers a terminal and shows nothing itself.

    Control characters could move the cursor or change colours; those that turn the direction of writing
    could make one text look like another.
    """
    return "".join(
        character
        for character in _TURNS.sub("", text)
        if character in "\n\t" or unicodedata.category(character) != "Cc"
    )


def whole(text: str) -> str:
    """Return ``text`` with a replacement character for each half of a surrogate pair.

    Nothing can encode it, and pandas refuses a file in which it is escaped.
    """
    return _HALF_A_PAIR.sub("\ufffd", text)


def one_line(text: str) -> str:
    """Return ``text`` as one line of at most ``MAX_LINE`` characters; a provider may send a page."""
    # Line ends are white space before they are control characters: they must leave a space behind.
    words = printable(" ".join(text.split())).split()
    line = " ".join(words)
    return line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 4].rstrip()} ..."


def json_text(data: Any, default: Callable[[Any], Any] | None = None) -> str:
    """Return ``data`` as JSON for standard output; on one line, unless a person reads it.

    Args:
        data: What ``json.dumps`` takes.
        default: What to make of anything else, as for ``json.dumps``.
    """
    return _json(data, default, indent=2 if sys.stdout.isatty() else None)


def json_line(data: Any, default: Callable[[Any], Any] | None = None) -> str:
    """Return ``data`` as JSON on one line, whoever reads it; arguments as for ``json_text``."""
    return _json(data, default, indent=None)


def _json(data: Any, default: Callable[[Any], Any] | None, *, indent: int | None) -> str:
    text = whole(json.dumps(data, ensure_ascii=False, indent=indent, default=default))
    encodes_all = (sys.stdout.encoding or "").lower().startswith("utf")
    return (_UNESCAPED if encodes_all else _NOT_ASCII).sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04x}" if code <= _LAST_OF_FOUR_DIGITS else json.dumps(match[0])[1:-1]
