# ruff: noqa: RUF001 - this module handles similar-looking characters on purpose
"""Tokens of nearly valid JSON: white space, comments, strings, numbers and literals.

All searches share one budget, so a hostile reply takes no longer than a long one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container
from typing import Any, Final

from kantan_agents.models.structured.parsing.escapes import AMBIGUOUS, has_control, unescape_damaged
from kantan_agents.models.structured.parsing.strict_json import NOTHING, decode_at, depth_of, unescape

MAX_STEPS: Final = 50_000
"""Steps for one reply, of about a microsecond: less than 0.1 s in total.

A member costs about five. This suffices for 50,000 characters with damage in every line.
"""
MAX_DEPTH: Final = 200
"""Maximum nesting: validators, printers and copiers recurse."""

QUOTES: Final = {'"': '"', "'": "'", "“": "”", "”": "”", "‘": "’", "’": "’", "＂": "＂"}
COMMAS: Final = frozenset(",，")
COLONS: Final = frozenset(":：")
OPENERS: Final = {"{": "}｝", "｛": "}｝", "[": "]］", "［": "]］"}
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
# Bounded, because it is matched many times.
_KEY = re.compile(
    rf"""(?:"[^"\\\n]{{0,100}}"|'[^'\\\n]{{0,100}}'|[“”][^“”\\\n]{{0,100}}”|[‘’][^‘’\\\n]{{0,100}}’"""
    rf"""|＂[^＂\\\n]{{0,100}}＂)[{_SPACES}]{{0,100}}[:：]"""
)
_NEXT_MEMBER = re.compile(rf"""["'“”‘’＂}}｝,，….]|[\w$][\w$.-]{{0,100}}[{_SPACES}]{{0,100}}[:：]""")
_PROSE = re.compile(rf"(?!(?:{'|'.join(_LITERALS)})(?![\w$]))[^\W\d_]")
_WORD = re.compile(r"\w")
_AFTER = re.compile(r"[\s(\[{<:=,/>-]")  # precedes a quotation
_MAX_DIGITS = 4_000  # below Python's limit for converting to int
_STRICT_TRIES = 32  # a failed one costs more the later it starts


class BudgetSpentError(Exception):
    """The budget for this reply is spent."""


class TokenSource:
    """A reply with its caches and its budget.

    ``broken``: brackets that start no strict JSON.
    """

    def __init__(self, text: str, steps: int = MAX_STEPS, broken: Container[int] = ()) -> None:
        self.text = text
        self.end = len(text)
        self.spent = 0
        self.comment: int | None = None
        """Index of the first comment skipped since the last reset."""
        self._steps = steps
        self._broken = broken
        self._found: dict[str, tuple[int, int]] = {}
        self._tries = _STRICT_TRIES
        self._tried_length = 2 * len(text) + 10_000

    def spend(self, steps: int) -> None:
        """Charge steps; raise BudgetSpentError."""
        self.spent += steps
        if self.spent > self._steps:
            raise BudgetSpentError

    def find(self, needle: str, start: int) -> int:
        """Return the next occurrence, or the end; cached."""
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
        """Return the index after white space and comments."""
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
        """Return whether the reply or its block ends here."""
        return pos >= self.end or (self.text.startswith("```", pos) and self.text[pos - 1] == "\n")

    def json_at(self, pos: int, depth: int) -> tuple[Any, int]:
        """Return the strict value at a bracket, and its end."""
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

    def has_control(self, start: int, end: int) -> bool:
        """Return whether an escape is ambiguous."""
        return has_control(self.text, start, end)

    def key(self, pos: int) -> tuple[Any, int]:
        """Return the quoted key at an index, and its end; ``NOTHING`` if unclosed.

        The first quote closes it, except an apostrophe within a word.
        """
        quote = QUOTES[self.text[pos]]
        place = self._closing(quote, pos + 1)
        while place < self.end and quote in "'’" and _WORD.match(self.text, place + 1):
            place = self._closing(quote, place + 1)
        if place >= self.end:
            return NOTHING, pos
        return self._unescaped(pos + 1, place), place + 1

    def string(self, pos: int, *, in_object: bool) -> tuple[Any, int]:
        """Return the string value at its opening quote, and its end.

        A quote closes it only if the next characters can follow a value. ``NOTHING`` and ``pos`` + 1 if it
        seems to contain a key; ``AMBIGUOUS`` if it has more than one reading.
        """
        quote = QUOTES[self.text[pos]]
        place = self._closing(quote, pos + 1)
        while place < self.end:
            if self.ends_value(place + 1, in_object=in_object):
                return self._content(pos, place), place + 1
            if _KEY.match(self.text, place):
                return NOTHING, pos + 1
            place = self._closing(quote, place + 1)
        return NOTHING, self.end

    def scalar(self, pos: int, *, in_object: bool) -> tuple[Any, int]:
        """Return the number or literal at an index, and its end; or ``NOTHING``.

        A number at the very end is rejected, because digits may be missing.
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
        """Return whether these characters may follow a value."""
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
        while True:
            self.spend(1)
            place = self.find(quote, pos)
            if place >= self.end:
                return place
            before = self.text[pos:place]
            if (len(before) - len(before.rstrip("\\"))) % 2 == 0:
                return place
            pos = place + 1

    def _content(self, start: int, end: int) -> Any:
        left = self.text[start]
        marks = {left, QUOTES[left]}
        if any(mark in self.text[start + 1 : end] for mark in marks):
            self.spend((end - start) // 16)
            if not _is_quotation(self.text[start + 1 : end], marks):
                return AMBIGUOUS
        return self._unescaped(start + 1, end)

    def _unescaped(self, start: int, end: int) -> Any:
        body = self.text[start:end]
        if "\\" not in body:
            return body
        if self.has_control(start, end):
            return AMBIGUOUS
        if (value := unescape(body)) is not None:
            return value
        self.spend(body.count("\\"))
        return unescape_damaged(body, QUOTES)


def _is_quotation(body: str, marks: set[str]) -> bool:
    """Return whether unescaped quotes can only be a quotation, apostrophe or inches.

    Otherwise they may delimit several strings: ``"a" + "b"``.
    """
    places = [
        match.start()
        for match in re.finditer(rf"\\.|[{''.join(marks)}]", body, re.DOTALL)
        if match[0] in marks
    ]
    if not places:
        return True
    if places[0] == 0:
        return False
    around = f"{body} "
    loose = [
        place for place in places if not (_WORD.match(body[place - 1]) and _WORD.match(around[place + 1]))
    ]
    if len(loose) < 2:  # noqa: PLR2004 - two strings have two quotes between them
        return True
    pairs = list(zip(loose[::2], loose[1::2], strict=False))
    return len(loose) % 2 == 0 and all(
        _AFTER.match(body[left - 1])
        and re.search(r"\w", body[left + 1 : right])
        and not body[left + 1].isspace()
        and not body[right - 1].isspace()
        for left, right in pairs
    )
