"""The arguments of a command, cut into pieces; each knows where it stood."""

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
    """A quote is not closed, or something stands right behind one.

    Attributes:
        reason: What is wrong, and where.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Token(NamedTuple):
    """One piece.

    Attributes:
        text: The piece without its quotes; of ``name="a b"`` all of it, as it was typed.
        start: Where it begins in the text, counted from 0.
        end: Where it ends.
        key: What stands before the first ``=``, dashes included; None if there is none.
        value: What stands behind it, without quotes.
        is_quoted: Whether the piece, or its value, stood in quotes.
    """

    text: str
    start: int
    end: int
    key: str | None = None
    value: str | None = None
    is_quoted: bool = False

    @property
    def is_option(self) -> bool:
        """Whether it begins with two dashes and says something behind them."""
        return self.text.startswith("--") and len(self.text) > 2 and not (self.is_quoted and self.key is None)  # noqa: PLR2004

    @property
    def ends_options(self) -> bool:
        """Whether it is ``--``, behind which nothing is an option."""
        return self.text == "--" and not self.is_quoted


def tokens_of(text: str) -> list[Token]:
    """Cut a text into pieces at its white space, wherever that does not stand in quotes.

    Quotes count where a piece or the value of ``name=`` begins; in ``it's`` there are none. In double quotes
    a backslash stands before a quote or a backslash that is meant; elsewhere everything is as it is.

    Raises:
        UnbalancedQuoteError: A quote is not closed, or something stands right behind one.
    """
    return list(_tokens(text))


def is_all_quoted(text: str) -> bool:
    """Return whether a text is one piece in quotes from its first character to its last."""
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
        raise UnbalancedQuoteError(f"white space must stand behind the quote at position {end}")
    value = _ESCAPE.sub(r"\1", matched[1]) if text[at] == '"' else matched[1]
    return value, end
