"""Change the strings and numbers in JSON text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress

from kantan_agents.core.interception import TextRewriter

Change = Callable[[str, str], str]
"""Takes a string, or a number as a string, and its key or ""; returns the replacement."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|-?[0-9][0-9.eE+-]*', re.DOTALL)
_STRING_SIGN = re.compile(r'["\\]')
_BEGIN = re.compile(r'["0-9-]')
_NUMBER_END = re.compile(r"[^0-9.eE+-]")
_VALID = re.compile(r"(?:[\s{}\[\]:,]+|(?:true|false|null)(?=[\s,}\]]))*")
_LITERAL_BEGIN = re.compile(r"t(?:r(?:ue?)?)?|f(?:a(?:l(?:se?)?)?)?|n(?:u(?:ll?)?)?")
_KEY = re.compile(r"[\w.-]{1,64}")
_STRUCTURE = re.compile(r"[{}\[\]:,]")


def looks_like_json(text: str) -> bool:
    """Whether it is a JSON object or list."""
    return text.lstrip().startswith(("{", "[")) and is_valid_json(text)


def is_valid_json(text: str) -> bool:
    """Return whether ``text`` is JSON."""
    with suppress(ValueError, RecursionError):
        json.loads(text)
        return True
    return False


def change_json(text: str, change: Change) -> str:
    """Apply ``change`` to every string and number.

    A changed number becomes a string. In invalid JSON, everything that looks like a string or a number is
    changed.
    """
    changer = _Changer(change)
    place = 0
    parts: list[str] = []
    for found in _TOKEN.finditer(text):
        parts += (changer.passed(text[place : found.start()]), changer.changed(found[0]))
        place = found.end()
    return "".join((*parts, text[place:]))


def strings_in(text: str) -> Iterator[str]:
    """As ``change_json`` passes them on."""
    for found in _TOKEN.finditer(text):
        yield json.loads(found[0], strict=False) if found[0].startswith('"') else found[0]


class _Changer:
    """Changes strings and numbers, and tracks their keys."""

    def __init__(self, change: Change) -> None:
        self._change = change
        self._last = ""  # the last string, which is a key if a colon follows
        self._key = ""
        self._lists: list[str | None] = []  # the key of each open list; None for an object

    @property
    def key(self) -> str:
        return self._key

    def passed(self, structure: str) -> str:
        """Track the keys between two values."""
        for sign in _STRUCTURE.findall(structure):
            if sign == ":":
                self._key = self._last
            elif sign == ",":
                self._key = (self._lists[-1] if self._lists else None) or ""
            elif sign in "{[":
                self._lists.append(self._key if sign == "[" else None)
                self._key = self._key if sign == "[" else ""
            elif self._lists:
                self._lists.pop()
        return structure

    def changed(self, token: str) -> str:
        if not token.startswith('"'):
            changed = self._change(token, self._key)
            return token if changed == token else json.dumps(changed)
        try:
            value = json.loads(token, strict=False)
        except ValueError:
            return self._change(token, self._key)  # truncated or invalid
        self._last = value
        changed = self._change(value, self._key)
        return token if changed == value else json.dumps(changed, ensure_ascii=token.isascii())


class _Rest:
    """Rewrites text that is not JSON, such as ``hunter2}`` in ``{"password": hunter2}``."""

    def __init__(self, rewriter: TextRewriter, key: str) -> None:
        self._rewriter = rewriter
        self._is_hidden = _KEY.fullmatch(key) is not None
        self._hidden = rewriter.feed(f"{key}=") if self._is_hidden else ""

    def feed(self, piece: str) -> str:
        return self._without_key(self._rewriter.feed(piece))

    def end(self) -> str:
        passed = self._without_key(self._rewriter.end())
        return self._hidden + passed if self._is_hidden else passed

    def _without_key(self, text: str) -> str:
        if not self._is_hidden:
            return text
        self._hidden += text
        _, sign, passed = self._hidden.partition("=")
        self._is_hidden = not sign
        return passed


class JsonRedaction:
    """Changes streamed JSON text. Each string or number is withheld until it is complete.

    ``as_text`` creates the rewriter for a rest that is not JSON.
    """

    def __init__(self, change: Change, as_text: Callable[[], TextRewriter] | None = None) -> None:
        self._changer = _Changer(change)
        self._as_text = as_text
        self._rest: _Rest | None = None
        self._has_begun = False
        self._word = ""  # a prefix of `true`, `false` or `null`
        self._token: list[str] = []
        self._is_string = False
        self._is_escaped = False

    def feed(self, piece: str) -> str:
        """Return the complete text so far."""
        passed: list[str] = []
        place = 0
        while place < len(piece):
            if self._rest is not None:
                passed.append(self._rest.feed(piece[place:]))
                break
            if not self._token:
                found = _BEGIN.search(piece, place)
                begin = found.start() if found is not None else len(piece)
                passed.append(self._between(piece[place:begin], is_end=found is None))
                place = begin
                if found is not None and self._rest is None:
                    self._token, self._is_string = [found[0]], found[0] == '"'
                    place += 1
                continue
            end = self._end_of_string(piece, place) if self._is_string else self._end_of_number(piece, place)
            self._token.append(piece[place : len(piece) if end is None else end])
            if end is not None:
                passed.append(self._end_of_token())
            place = len(piece) if end is None else end
        return "".join(passed)

    def end(self) -> str:
        """Return the remaining text."""
        if self._rest is not None:
            return self._rest.end()
        return self._end_of_token() + self._word

    def _end_of_token(self) -> str:
        token, self._token, self._is_escaped = "".join(self._token), [], False
        found = _TOKEN.fullmatch(token)
        return self._changer.changed(token) if found is not None else token

    def _between(self, text: str, *, is_end: bool) -> str:
        """Return the certain part."""
        if self._as_text is None:
            return self._changer.passed(text)
        text = self._word + text
        valid = _VALID.match(text)
        end = valid.end() if valid is not None else 0
        self._word = text[end:]
        passed = self._changer.passed(text[:end])
        begun = text[:end].lstrip()
        is_object = self._has_begun or begun.startswith(("{", "[")) or (is_end and not text.strip())
        self._has_begun = self._has_begun or bool(begun)
        if is_object and (not self._word or (is_end and _LITERAL_BEGIN.fullmatch(self._word))):
            return passed
        self._rest = _Rest(self._as_text(), self._changer.key)
        return passed + self._rest.feed(self._word)

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
