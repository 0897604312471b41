"""JSON text whose strings and numbers are changed, each on its own, and nothing around them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|-?[0-9][0-9.eE+-]*', re.DOTALL)
_STRING_SIGN = re.compile(r'["\\]')
_BEGIN = re.compile(r'["0-9-]')
_NUMBER_END = re.compile(r"[^0-9.eE+-]")


def looks_like_json(text: str) -> bool:
    """Whether ``text`` is a JSON object or list."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    with suppress(ValueError, RecursionError):
        json.loads(text)
        return True
    return False


def change_json(text: str, change: Callable[[str], str]) -> str:
    """Return JSON text with every string and number sent through ``change``.

    A number that is changed becomes a string. What is no JSON is changed wherever it looks like a string or a
    number.
    """
    return _TOKEN.sub(lambda found: _changed(found[0], change), text)


def _changed(token: str, change: Callable[[str], str]) -> str:
    if not token.startswith('"'):
        changed = change(token)
        return token if changed == token else json.dumps(changed)
    try:
        value = json.loads(token, strict=False)
    except ValueError:
        return change(token)  # not to its end, or with a mistake in it
    changed = change(value)
    return token if changed == value else json.dumps(changed, ensure_ascii=token.isascii())


class JsonRedaction:
    """Changes JSON text that comes in pieces; a string or number is kept back until its end.

    Args:
        change: Gets a string, or a number as text, and returns what stands in its place.
    """

    def __init__(self, change: Callable[[str], str]) -> None:
        self._change = change
        self._token: list[str] = []
        self._is_string = False
        self._is_escaped = False

    def feed(self, piece: str) -> str:
        """Take a piece, and return what is complete by now."""
        passed: list[str] = []
        place = 0
        while place < len(piece):
            if not self._token:
                found = _BEGIN.search(piece, place)
                begin = found.start() if found is not None else len(piece)
                passed.append(piece[place:begin])
                place = begin
                if found is not None:
                    self._token, self._is_string = [found[0]], found[0] == '"'
                    place += 1
                continue
            end = self._end_of_string(piece, place) if self._is_string else self._end_of_number(piece, place)
            self._token.append(piece[place : len(piece) if end is None else end])
            if end is not None:
                passed.append(self.end())
            place = len(piece) if end is None else end
        return "".join(passed)

    def end(self) -> str:
        """Return the rest."""
        token, self._token, self._is_escaped = "".join(self._token), [], False
        return change_json(token, self._change)

    def _end_of_string(self, piece: str, place: int) -> int | None:
        if self._is_escaped:
            self._is_escaped = False
            place += 1
        while (found := _STRING_SIGN.search(piece, place)) is not None:
            if found[0] == '"':
                return found.end()
            if found.end() == len(piece):
                self._is_escaped = True
                return None
            place = found.end() + 1
        return None

    @staticmethod
    def _end_of_number(piece: str, place: int) -> int | None:
        found = _NUMBER_END.search(piece, place)
        return found.start() if found is not None else None
