"""Texts that every database and every request takes: without half surrogate pairs and zero characters."""

from __future__ import annotations


def whole_text(text: str) -> str:
    """Return a text with both halves of a pair as one character, and U+FFFD for a half alone."""
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def storable_text(text: str) -> str:
    """Return a whole text with U+2400, the symbol for it, in place of a zero character."""
    text = whole_text(text)
    return text.replace("\0", "\N{SYMBOL FOR NULL}") if "\0" in text else text
