# ruff: noqa: RUF001, RUF002 - this module handles similar-looking characters on purpose
"""A tolerant parser for nearly valid JSON; it never invents data."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any

import attrs

from kantan_agents.models.structured.parsing.escapes import AMBIGUOUS
from kantan_agents.models.structured.parsing.strict_json import NOTHING
from kantan_agents.models.structured.parsing.tolerant_tokens import (
    CLOSERS,
    COLONS,
    COMMAS,
    MAX_DEPTH,
    OPENERS,
    QUOTES,
    BudgetSpentError,
    TokenSource,
)

Found = tuple[int, int, Any]
"""The start of a value, where to search next, and the value."""


@attrs.frozen
class Partial:
    """A value that is cut off or has an unreadable member."""

    value: Any


_START_STEPS = 8
_BARE_KEY = re.compile(r"[\w$][\w$.-]*")
_ELISION = re.compile(r"\.\.\.|…")
_UNREADABLE = re.compile(r'[^,，{}｛｝\[\]［］"“”＂\n]*')


class _Open:
    __slots__ = ("closers", "items", "key", "separated", "spoiled")

    def __init__(self, opener: str) -> None:
        self.closers = OPENERS[opener]
        self.items: dict[str, Any] | list[Any] = {} if opener in "{｛" else []
        self.key: Any = ""
        self.separated = True  # a comma precedes the next member, or none is needed
        self.spoiled = False

    def put(self, value: Any) -> None:
        """Add the next value; ``NOTHING`` drops its key or spoils the array."""
        self.separated = False
        if isinstance(self.items, list):
            self.items.append(value)
            self.spoiled = self.spoiled or value is NOTHING
        elif value is NOTHING or self.key is AMBIGUOUS:
            self.items.pop(self.key, None)
            self.spoiled = True
        else:
            self.items[self.key] = value

    def value(self) -> Any:
        """Return the value so far; ``NOTHING`` for a spoiled array or without readable members."""
        if self.spoiled and (isinstance(self.items, list) or not self.items):
            return NOTHING
        return self.items


class _StopError(Exception):
    """The rest of a value cannot be read; search on at ``pos``."""

    def __init__(self, pos: int, *, cut_off: bool) -> None:
        super().__init__(pos)
        self.pos = pos
        self.cut_off = cut_off


class _Reader:
    """Reads one object or array in a single pass, without recursion."""

    def __init__(self, source: TokenSource, start: int) -> None:
        self._source = source
        self._start = start
        self._open = [_Open(source.text[start])]
        self._last: Any = NOTHING
        self._too_deep = False
        self._is_partial = False

    def read(self) -> tuple[Any, int]:
        """Return the value, ``Partial`` or ``NOTHING``, and where to search next."""
        pos = self._start + 1
        self._source.comment = None
        try:
            while self._open:
                pos = self._step(pos)
        except _StopError as stop:
            # The comment may be ordinary text, so search inside it.
            pos = stop.pos if self._source.comment is None else min(stop.pos, self._source.comment + 1)
            return self._cut_off() if stop.cut_off else NOTHING, pos
        if self._too_deep or self._last is NOTHING:
            return NOTHING, pos
        return Partial(self._last) if self._is_partial else self._last, pos

    def _step(self, pos: int) -> int:
        self._source.spend(1)
        top, here = self._open[-1], self._next(pos)
        char = self._source.text[here]
        if char in CLOSERS:
            if char not in top.closers:
                raise _StopError(here, cut_off=False)
            closed = self._open.pop()
            self._last = closed.value()
            self._is_partial = self._is_partial or closed.spoiled
            if self._open:
                self._open[-1].put(self._last)
            return here + 1
        if char in COMMAS:
            top.separated = True
            return here + 1
        if match := _ELISION.match(self._source.text, here):
            top.spoiled = top.separated = True
            return match.end()
        if isinstance(top.items, dict):
            here = self._key(top, here)
            if self._source.text[here] in COMMAS or self._source.text[here] in CLOSERS:
                top.put(NOTHING)
                return here
        elif not top.separated and char not in OPENERS:
            raise _StopError(here, cut_off=False)
        return self._value(top, here)

    def _next(self, pos: int) -> int:
        here = self._source.skip(pos)
        if self._source.is_end(here):
            raise _StopError(pos, cut_off=True)
        return here

    def _key(self, top: _Open, here: int) -> int:
        text = self._source.text
        if text[here] in QUOTES:
            key, end = self._source.key(here)
            if key is NOTHING:
                raise _StopError(here + 1, cut_off=True)
        elif top.separated and (match := _BARE_KEY.match(text, here)):
            key, end = match[0], match.end()
            self._source.spend(1 + len(key) // 64)
        else:
            raise _StopError(here, cut_off=False)
        end = self._next(end)
        if text[end] not in COLONS:
            raise _StopError(end, cut_off=False)
        top.key = key
        return self._next(end + 1)

    def _value(self, top: _Open, here: int) -> int:
        source, in_object = self._source, isinstance(top.items, dict)
        char = source.text[here]
        if char in OPENERS:
            value, end = source.json_at(here, MAX_DEPTH - len(self._open))
            if value is NOTHING or source.has_control(here, end):
                source.spend(1)
                self._open.append(_Open(char))
                self._too_deep = self._too_deep or len(self._open) > MAX_DEPTH
                return here + 1
        elif char in QUOTES:
            value, end = source.string(here, in_object=in_object)
            if value is NOTHING:  # a string that is cut off is incomplete
                raise _StopError(end, cut_off=end >= source.end)
            value = NOTHING if value is AMBIGUOUS else value
        else:
            value, end = source.scalar(here, in_object=in_object)
            if value is NOTHING:
                end = self._unreadable(here)
                if source.is_end(source.skip(end)):
                    raise _StopError(here, cut_off=True)
        top.put(value)
        return end

    def _unreadable(self, here: int) -> int:
        """Return the end of an unreadable value if a delimiter follows."""
        match = _UNREADABLE.match(self._source.text, here)
        end = match.end() if match else here
        self._source.spend((end - here) // 64)
        after = self._source.skip(end)
        if end == here or not (
            self._source.is_end(after)
            or self._source.text[after] in COMMAS
            or self._source.text[after] in CLOSERS
        ):
            raise _StopError(max(after, here + 1), cut_off=False)
        return end

    def _cut_off(self) -> Any:
        value: Any = NOTHING
        while self._open:
            top = self._open.pop()
            if value is not NOTHING:
                top.put(value)
            value = top.value() if top.items else NOTHING
        return NOTHING if self._too_deep or value is NOTHING else Partial(value)


def value_at(source: TokenSource, start: int) -> tuple[Any, int]:
    """Return the value at a bracket, ``Partial`` or ``NOTHING``, and where to search next."""
    value, pos = source.json_at(start, MAX_DEPTH)
    if value is NOTHING:
        source.spend(_START_STEPS)
        value, pos = _Reader(source, start).read()
    return value, pos


def tolerant_values(
    source: TokenSource, openers: str, known: Mapping[int, int] | None = None
) -> Iterator[Found]:
    """Yield each value or ``Partial`` until the budget is spent.

    ``openers`` is ``"{｛"`` for objects or ``"[［"`` for arrays. ``known`` values, by start and end, are
    skipped.
    """
    ends = sorted((known or {}).items())
    pos = 0
    try:
        while (start := min(source.find(opener, pos) for opener in openers)) < source.end:
            source.spend(1)
            index = bisect_right(ends, start, key=itemgetter(0)) - 1
            if index >= 0 and ends[index][1] > start:
                pos = ends[index][1]
                continue
            value, pos = value_at(source, start)
            if value is not NOTHING:
                yield start, pos, value
    except BudgetSpentError:
        return
