"""Finds the matching lines of one file."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from kantan_agents.toolkit.files.grep.pattern import SearchPattern

_CHECKED = 1_000


class EnoughError(Exception):
    """The result is full."""


@attrs.frozen
class Line:
    """A line of the result; not ``is_match`` is context."""

    number: int
    data: bytes
    is_match: bool
    column: int = 0


@attrs.define(eq=False)
class LineSearch:
    """Searches one file, block by block; ``check`` may raise. Without ``show``, it only counts."""

    pattern: SearchPattern
    check: Callable[[], None]
    show: Callable[[Line], None] | None = None
    before: int = 0
    after: int = 0
    matches: int = 0
    _number: int = 1
    _still: int = 0  # lines of context still to show
    _tail: list[bytes] = attrs.field(factory=list)  # the last lines not shown
    _data: bytes = b""
    _place: int = 0

    def feed(self, block: bytes, *, only_first: bool = False) -> None:
        """Search a block that is not empty."""
        data = block.replace(b"\r\n", b"\n") if b"\r" in block else block
        search, is_multiline = self.pattern.regexp.search, self.pattern.is_multiline
        self._data, self._place = data, 0
        place = start = 0
        end = -1
        found = search(data)
        while found is not None:
            first, last = found.span()
            # Only between two matches: one long line may contain many.
            start = data.rfind(b"\n", place, first) + 1 or start
            if start == len(data):  # the empty rest after the last line end
                break
            at = max(first, last - 1)
            if end < at:
                end = data.find(b"\n", at)
                end = len(data) if end < 0 else end
            self.matches += 1
            if only_first:
                return
            if self.matches % _CHECKED == 0:
                self.check()
            if self.show is not None:
                self._show_match(start, end, first)
            if is_multiline:
                place = max(last, first + 1)
                start = data.rfind(b"\n", first, place) + 1 or start
            else:
                place = start = end + 1
            found = search(data, place) if place <= len(data) else None
        if self.show is not None:
            self._end_block()

    def _show_match(self, start: int, end: int, first: int) -> None:
        self._show_after(start)
        if self._place < start:
            begin, missing = start, self.before
            while missing and begin > self._place:
                begin = self._data.rfind(b"\n", 0, begin - 1) + 1
                missing -= 1
            if not self._place:
                self._show_tail(missing)
            self._skip_to(max(begin, self._place))
        elif not self._place:
            self._show_tail(self.before)
        while self._place < start:
            self._show_next(is_match=False)
        while self._place <= end and self._place < len(self._data):
            self._show_next(is_match=True, first=first)
        self._still = self.after
        self._tail.clear()

    def _show_after(self, stop: int) -> None:
        while self._still and self._place < stop:
            self._still -= 1
            self._show_next(is_match=False)

    def _show_tail(self, most: int) -> None:
        lines = self._tail[len(self._tail) - most :] if 0 < most < len(self._tail) else self._tail
        for place, line in enumerate(lines if most else ()):
            self._give(Line(self._number - len(lines) + place, line, is_match=False))

    def _show_next(self, *, is_match: bool, first: int = 0) -> None:
        end = self._data.find(b"\n", self._place)
        stop = len(self._data) if end < 0 else end
        line = Line(self._number, self._data[self._place : stop], is_match, max(0, first - self._place))
        self._number += end >= 0
        self._place = stop + 1
        self._give(line)

    def _skip_to(self, place: int) -> None:
        self._number += self._data.count(b"\n", self._place, place)
        self._place = place

    def _end_block(self) -> None:
        self._show_after(len(self._data))
        if self._place >= len(self._data):
            return
        if self.before:
            begin = len(self._data) - self._data.endswith(b"\n")
            for _ in range(self.before):
                begin = self._data.rfind(b"\n", self._place, begin) if begin > self._place else -1
                if begin < 0:
                    break
            lines = self._data[max(begin + 1, self._place) :].removesuffix(b"\n").split(b"\n")
            self._tail = ([] if self._place else self._tail) + lines
            self._tail = self._tail[-self.before :]
        self._skip_to(len(self._data))

    def _give(self, line: Line) -> None:
        if self.show is not None:
            self.show(line)
