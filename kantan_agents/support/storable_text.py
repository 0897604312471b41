"""Text without half surrogate pairs and null characters."""

from __future__ import annotations


def whole_text(text: str) -> str:
    """Join surrogate pairs, and replace half a pair with U+FFFD."""
    try:
        text.isascii() or text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def storable_text(text: str) -> str:
    """Also replace null characters with U+2400."""
    text = whole_text(text)
    return text.replace("\0", "\N{SYMBOL FOR NULL}") if "\0" in text else text
