"""The result of one search."""

from __future__ import annotations

import attrs

from kantan_agents.toolkit.files.grep.lines import EnoughError, Line
from kantan_agents.toolkit.files.names import shown

MAX_OUTPUT = 50_000
MAX_LINE = 500
_LEAD = 100
_UTF8_BYTES = 4


@attrs.define
class GrepOutput:
    """Collects lines, files or counts, after the first ``skip`` entries."""

    skip: int
    limit: int
    numbers: bool = True
    has_gaps: bool = False
    entries: list[str] = attrs.field(factory=list)
    is_full: bool = False
    _seen: int = 0
    _length: int = 0
    _last: tuple[str, int] | None = None

    def add(self, entry: str) -> None:
        """Add an entry; raise EnoughError if it does not fit."""
        self._seen += 1
        if self._seen <= self.skip:
            return
        if len(self.entries) >= self.limit or self._length > MAX_OUTPUT:
            self.is_full = True
            raise EnoughError
        self._length += len(entry)
        self.entries.append(entry)

    def add_line(self, path: str, line: Line) -> None:
        """Add a line in ripgrep's format."""
        mark = ":" if line.is_match else "-"
        number = f"{line.number}{mark}" if self.numbers else ""
        entry = f"{shown(path)}{mark}{number}{_cut(line)}"
        is_apart = self._last is not None and self._last != (path, line.number - 1)
        if self.has_gaps and is_apart and self.entries:
            entry = f"--\n{entry}"
        self._last = (path, line.number)
        self.add(entry)

    @property
    def next_offset(self) -> int:
        """Offset of the first entry that did not fit."""
        return self.skip + len(self.entries)


def _cut(line: Line) -> str:
    data, column = line.data, line.column
    if len(data) <= MAX_LINE:
        return _decoded(data)
    start = max(0, column - _LEAD) if column > MAX_LINE - _LEAD else 0
    piece = _decoded(data[start : start + MAX_LINE])
    return f"{'...' if start else ''}{piece}... [cut: the line has {len(data):,} bytes]"


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        at_border = error.start < _UTF8_BYTES or error.end > len(data) - _UTF8_BYTES
        if at_border and len(data) == MAX_LINE:  # cut within a character
            return data.decode("utf-8", "ignore")
        return data.decode("latin-1")
