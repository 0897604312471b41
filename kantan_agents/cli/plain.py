"""Text from outside on its way to a terminal: what a model or a provider says is only ever text."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Callable
from typing import Any

MAX_LINE = 500

# JSON escapes the control characters of ASCII except this one; some terminals obey the others as well.
_UNESCAPED = re.compile("[\x7f-\x9f]")


def printable(text: str) -> str:
    """Return ``text`` without control characters, which could move the cursor or change colours."""
    return "".join(
        character for character in text if character in "\n\t" or unicodedata.category(character) != "Cc"
    )


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
    text = json.dumps(
        data,
        ensure_ascii=not (sys.stdout.encoding or "").lower().startswith("utf"),
        indent=2 if sys.stdout.isatty() else None,
        default=default,
    )
    return _UNESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
