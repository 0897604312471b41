"""Splits arguments into tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"\S+")
_KEY = re.compile(r"(-{0,2}[^\s\"'=]+)=")
_DOUBLE = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_SINGLE = re.compile(r"'([^']*)'")
_ESCAPE = re.compile(r"\\([\"\\])")


class UnbalancedQuoteError(Exception):
    """A quote is not closed, or not followed by white space."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Token(NamedTuple):
    """One token.

    Attributes:
        text: The token without its quotes; ``name="a b"`` stays as typed.
        key: The text before the first ``=``, including dashes; None without ``=``.
    """

    text: str
    start: int
    end: int
    key: str | None = None
    value: str | None = None
    is_quoted: bool = False

    @property
    def is_option(self) -> bool:
        """Whether it is ``--name``."""
        return self.text.startswith("--") and len(self.text) > 2 and not (self.is_quoted and self.key is None)  # noqa: PLR2004

    @property
    def ends_options(self) -> bool:
        """Whether it is ``--``."""
        return self.text == "--" and not self.is_quoted


def tokens_of(text: str) -> list[Token]:
    r"""Split ``text`` at white space outside quotes.

    A quote opens only at the start of a token or of the value of ``name=``, so ``it's`` has none. Only ``\"``
    and ``\\`` in double quotes are escapes.
    """
    return list(_tokens(text))


def is_all_quoted(text: str) -> bool:
    """Return whether ``text`` is a single quoted token."""
    matched = (_DOUBLE if text.startswith('"') else _SINGLE).match(text)
    return matched is not None and matched.end() == len(text)


def _tokens(text: str) -> Iterator[Token]:
    at = _skip(text, 0)
    while at < len(text):
        token = _token(text, at)
        yield token
        at = _skip(text, token.end)


def _skip(text: str, at: int) -> int:
    matched = _SPACE.match(text, at)
    return matched.end() if matched is not None else at


def _token(text: str, at: int) -> Token:
    if text[at] in "\"'":
        value, end = _quoted(text, at)
        return Token(value, at, end, is_quoted=True)
    key = _KEY.match(text, at)
    if key is not None and text[key.end() : key.end() + 1] in ('"', "'"):
        value, end = _quoted(text, key.end())
        return Token(text[at:end], at, end, key[1], value, is_quoted=True)
    word = _WORD.match(text, at)
    end = word.end() if word is not None else len(text)
    if key is None:
        return Token(text[at:end], at, end)
    return Token(text[at:end], at, end, key[1], text[key.end() : end])


def _quoted(text: str, at: int) -> tuple[str, int]:
    matched = (_DOUBLE if text[at] == '"' else _SINGLE).match(text, at)
    if matched is None:
        raise UnbalancedQuoteError(f"the quote {text[at]} at position {at + 1} is not closed")
    end = matched.end()
    if end < len(text) and not text[end].isspace():
        raise UnbalancedQuoteError(f"white space must follow the quote at position {end}")
    value = _ESCAPE.sub(r"\1", matched[1]) if text[at] == '"' else matched[1]
    return value, end
