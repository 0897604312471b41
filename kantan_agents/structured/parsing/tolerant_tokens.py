# ruff: noqa: RUF001 - telling these characters apart is the work of this file
"""The words of a reply that is nearly JSON: white space, comments, strings, numbers and literals.

All searching is done by compiled code, and every search is paid for out of one budget. So a hostile text
costs no more time than a long one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container
from typing import Any, Final

from kantan_agents.structured.parsing.strict_json import NOTHING, decode_at, depth_of, unescape

MAX_STEPS: Final = 50_000
"""What reading one reply tolerantly may cost, about a microsecond each: less than a tenth of a second.

A member costs some five steps, a part that is JSON as it stands next to nothing: this is enough for a reply
of 50,000 characters that is damaged in every line, and for a much longer one with some mistakes.
"""
MAX_DEPTH: Final = 200
"""How many objects and arrays may stand one in another: validators, printers and copiers recurse."""

QUOTES: Final = {'"': '"', "'": "'", "“": "”", "”": "”", "‘": "’", "’": "’", "＂": "＂"}
"""Of each opening quote the closing one."""
COMMAS: Final = frozenset(",，")
COLONS: Final = frozenset(":：")
OPENERS: Final = {"{": "}｝", "｛": "}｝", "[": "]］", "［": "]］"}
"""Of each bracket that opens, those that close."""
CLOSERS: Final = frozenset("}｝]］")

_LITERALS: Final = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
    "NaN": math.nan,
    "Infinity": math.inf,
    "-Infinity": -math.inf,
}
_SPACES = r"\s\ufeff\u200b-\u200f\u2060"
_SPACE = re.compile(rf"[{_SPACES}]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_LITERAL = re.compile(rf"(?:{'|'.join(_LITERALS)})(?![\w$])")
# Bounded: it is asked again and again.
_KEY = re.compile(
    rf"""(?:"[^"\\\n]{{0,100}}"|'[^'\\\n]{{0,100}}'|[“”][^“”\\\n]{{0,100}}”|[‘’][^‘’\\\n]{{0,100}}’"""
    rf"""|＂[^＂\\\n]{{0,100}}＂)[{_SPACES}]{{0,100}}[:：]"""
)
_NEXT_MEMBER = re.compile(rf"""["'“”‘’＂}}｝,，….]|[\w$][\w$.-]{{0,100}}[{_SPACES}]{{0,100}}[:：]""")
_PROSE = re.compile(rf"(?!(?:{'|'.join(_LITERALS)})(?![\w$]))[^\W\d_]")
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL
)
_WORD = re.compile(r"\w")
_MAX_DIGITS = 4_000  # more than the interpreter makes an int of
_STRICT_TRIES = 32  # a failed one costs time in proportion to where in the text it is made


class BudgetSpentError(Exception):
    """The reply has cost what it may cost."""


class Source:
    """A text, what has been found in it, and what that has cost.

    Args:
        text: The reply.
        steps: What reading it may cost.
        broken: Where something begins that is known to be no JSON as it stands.
    """

    def __init__(self, text: str, steps: int = MAX_STEPS, broken: Container[int] = ()) -> None:
        self.text = text
        self.end = len(text)
        self.spent = 0
        self.comment: int | None = None
        """Where the first comment stands that was skipped since this was last set to None."""
        self._steps = steps
        self._broken = broken
        self._found: dict[str, tuple[int, int]] = {}
        self._tries = _STRICT_TRIES
        self._tried_length = 2 * len(text) + 10_000

    def spend(self, steps: int) -> None:
        """Pay for work.

        Raises:
            BudgetSpentError: There is nothing left.
        """
        self.spent += steps
        if self.spent > self._steps:
            raise BudgetSpentError

    def find(self, needle: str, start: int) -> int:
        """Return the next place of a text, or the end; a stretch is not searched twice in a row."""
        begin, place = self._found.get(needle, (1, 0))
        if begin <= start <= place:
            return place
        place = self.text.find(needle, start)
        if place < 0:
            place = self.end
        self._found[needle] = (start, place)
        self.spend((place - start) // 4096)
        return place

    def skip(self, pos: int) -> int:
        """Return where white space and comments end."""
        text = self.text
        while pos < self.end and not ("!" <= text[pos] <= "~" and text[pos] not in "#/"):
            begin = pos
            match = _SPACE.match(text, pos)
            pos = match.end() if match else pos
            self.spend(1 + (pos - begin) // 64)
            if text.startswith(("//", "#"), pos):
                after = self.find("\n", pos)
            elif text.startswith("/*", pos):
                after = min(self.find("*/", pos + 2) + 2, self.end)
            else:
                break
            if self.comment is None:
                self.comment = pos
            pos = after
        return pos

    def is_end(self, pos: int) -> bool:
        """Return whether a reply ends at a place, or its code block does, with a fence on a new line."""
        return pos >= self.end or (self.text.startswith("```", pos) and self.text[pos - 1] == "\n")

    def json_at(self, pos: int, depth: int) -> tuple[Any, int]:
        """Return an object or array that is JSON as it stands, and its end, or ``NOTHING``.

        Args:
            pos: Where it opens.
            depth: How deep it may be.
        """
        if self._tries <= 0 or self._tried_length <= 0 or pos in self._broken:
            return NOTHING, pos
        value, end = decode_at(self.text, pos, constants=True)
        end = self.end if end < 0 else end
        self.spend(1 + (end - pos) // 256)
        if value is not NOTHING and depth_of(value, depth) <= depth:
            return value, end
        self._tries -= 1
        self._tried_length -= end - pos
        return NOTHING, pos

    def key(self, pos: int) -> tuple[Any, int]:
        """Return the quoted key that begins at a place, and its end; ``NOTHING`` if it does not end.

        The first quote ends it: what is not a key must not be read on to the next colon. An apostrophe in
        a word does not.
        """
        quote = QUOTES[self.text[pos]]
        place = self._closing(quote, pos + 1)
        while place < self.end and quote in "'’" and _WORD.match(self.text, place + 1):
            place = self._closing(quote, place + 1)
        if place >= self.end:
            return NOTHING, pos
        return self._unescaped(pos + 1, place), place + 1

    def string(self, pos: int, *, in_object: bool) -> tuple[Any, int]:
        """Return the string value that begins at a place, and its end.

        A quote ends it only if what follows is what follows a value.

        Args:
            pos: Where its first quote stands.
            in_object: Whether it is a member of an object; otherwise it is one of an array.

        Returns:
            ``NOTHING`` and the end of the text if no quote ends the string; ``NOTHING`` and ``pos`` + 1 if a
            key seems to stand in it, so that nobody can say where it ends.
        """
        quote = QUOTES[self.text[pos]]
        place = self._closing(quote, pos + 1)
        while place < self.end:
            if self.ends_value(place + 1, in_object=in_object):
                return self._unescaped(pos + 1, place), place + 1
            if _KEY.match(self.text, place):
                return NOTHING, pos + 1
            place = self._closing(quote, place + 1)
        return NOTHING, self.end

    def scalar(self, pos: int, *, in_object: bool) -> tuple[Any, int]:
        """Return the number or literal that stands at a place, and its end, or ``NOTHING``.

        A number at the very end is not one: its last digits may be missing.
        """
        text = self.text
        if match := _LITERAL.match(text, pos):
            value: Any = _LITERALS[match[0]]
        elif (match := _NUMBER.match(text, pos)) and match.end() < self.end:
            self.spend((match.end() - pos) // 64)
            if match[1] or match[2]:
                value = float(match[0])
            elif match.end() - pos <= _MAX_DIGITS:
                value = int(match[0])
            else:
                return NOTHING, pos
        else:
            return NOTHING, pos
        if self.ends_value(match.end(), in_object=in_object):
            return value, match.end()
        return NOTHING, pos

    def ends_value(self, pos: int, *, in_object: bool) -> bool:
        """Return whether what stands at a place is what follows a value."""
        self.spend(1)
        pos = self.skip(pos)
        if self.is_end(pos) or self.text[pos] in CLOSERS:
            return True
        if self.text[pos] not in COMMAS:
            return in_object and _KEY.match(self.text, pos) is not None
        pos = self.skip(pos + 1)
        if self.is_end(pos):
            return True
        if in_object:
            return _NEXT_MEMBER.match(self.text, pos) is not None
        return _PROSE.match(self.text, pos) is None

    def _closing(self, quote: str, pos: int) -> int:
        """Return the next quote that no backslash escapes."""
        while True:
            self.spend(1)
            place = self.find(quote, pos)
            if place >= self.end:
                return place
            before = self.text[pos:place]
            if (len(before) - len(before.rstrip("\\"))) % 2 == 0:
                return place
            pos = place + 1

    def _unescaped(self, start: int, end: int) -> str:
        body = self.text[start:end]
        if "\\" not in body:
            return body
        if (value := unescape(body)) is not None:
            return value
        self.spend(body.count("\\"))
        return _ESCAPE.sub(_character, body)


def _character(escape: re.Match[str]) -> str:
    written = escape[0]
    if written[1] in QUOTES:
        return written[1]
    value = unescape(written)
    return written if value is None else value  # what is no escape of JSON: a path, a pattern
