"""Apply a function to the strings and numbers in JSON text, complete or streamed."""

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
    """Return JSON text with ``change`` applied to every string and number.

    A changed number becomes a string. In invalid JSON, everything that looks like a string or a number is
    changed.
    """
    return _TOKEN.sub(lambda found: _changed(found[0], change), text)


def _changed(token: str, change: Callable[[str], str]) -> str:
    if not token.startswith('"'):
        changed = change(token)
        return token if changed == token else json.dumps(changed)
    try:
        value = json.loads(token, strict=False)
    except ValueError:
        return change(token)  # truncated or invalid
    changed = change(value)
    return token if changed == value else json.dumps(changed, ensure_ascii=token.isascii())


class JsonRedaction:
    """Changes streamed JSON text. Each string or number is withheld until it is complete.

    Args:
        change: Takes a string, or a number as text, and returns its replacement.
    """

    def __init__(self, change: Callable[[str], str]) -> None:
        self._change = change
        self._token: list[str] = []
        self._is_string = False
        self._is_escaped = False

    def feed(self, piece: str) -> str:
        """Add a piece, and return the text that is complete."""
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
        """Return the remaining text."""
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
