"""Text from outside on its way to a terminal: what a model or a provider says is only ever text."""

from __future__ import annotations

import unicodedata

MAX_LINE = 500


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
