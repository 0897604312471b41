"""``Read``: the numbered lines of a file."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import attrs
from agents import FunctionTool
from agents.tool_context import ToolContext

from kantan_agents.errors import FileNotUsableError
from kantan_agents.toolkit.files.blocks import text_blocks
from kantan_agents.toolkit.files.file_tool import file_tool
from kantan_agents.toolkit.files.known_files import KnownFiles
from kantan_agents.toolkit.files.names import shown_path
from kantan_agents.toolkit.files.opening import open_file, open_folder, opened_root
from kantan_agents.toolkit.files.root import Root
from kantan_agents.toolkit.files.text import BinaryFileError
from kantan_agents.toolkit.files.threads import SearchStop, in_thread

MAX_LINES = 2_000
MAX_LINE = 2_000
MAX_OUTPUT = 100_000
_COUNTED_SIZE = 64 << 20
_UTF8_BYTES = 4


def read_tool(root: Root, known: KnownFiles | None = None) -> FunctionTool:
    """Return the tool ``Read``."""

    async def read(
        _context: ToolContext[Any],
        file_path: str,
        offset: int | None = None,
        limit: int | None = None,
    ) -> str:
        """Read a text file. Each line starts with its number and a tab.

        Args:
            file_path: Path of the file, relative to the root folder.
            offset: Number of the first line, 1 by default.
            limit: How many lines, at most 2000.
        """
        first = max(1, offset or 1)
        lines = min(MAX_LINES, max(1, limit or MAX_LINES))
        return await in_thread(partial(read_lines, root, file_path, first, lines, known=known))

    return file_tool(read, "Read", root, parameter="file_path")


def read_lines(
    root: Root,
    file_path: str,
    first: int,
    lines: int,
    stop: SearchStop,
    *,
    known: KnownFiles | None = None,
) -> str:
    """Return numbered lines of a file."""
    parts = root.parts(file_path)
    if not parts:
        raise FileNotUsableError(path=".", reason="it is a folder, not a file: list it with LS")
    with opened_root(root) as top:
        folder = open_folder(root, top, parts[:-1])
        try:
            file = open_file(root, folder, parts)
        finally:
            os.close(folder)
    try:
        found = os.fstat(file)  # before: a change during the read must not count as read
        size = found.st_size
        page = _Page(first, lines)
        for block in text_blocks(file, size, stop):
            page.add(block)
            if page.is_full and size > _COUNTED_SIZE:
                break
        page.end()
        if known is not None:
            known.note(parts, found)
    except BinaryFileError as error:
        reason = f"it is a binary file of {size:,} bytes"
        raise FileNotUsableError(path=shown_path(parts), reason=reason) from error
    except OSError as error:
        raise FileNotUsableError(path=shown_path(parts), reason=error.strerror or str(error)) from error
    finally:
        os.close(file)
    return page.text(size)


@attrs.define
class _Page:
    first: int
    limit: int
    line: int = 1
    shown: list[str] = attrs.field(factory=list)
    is_full: bool = False
    is_latin: bool = False
    _length: int = 0
    _current: bytearray = attrs.field(factory=bytearray)
    _bytes: int = 0

    def add(self, block: bytes) -> None:
        """A line may continue in the next block."""
        newlines = block.count(b"\n")
        if self.is_full or self.line + newlines < self.first:
            self.line += newlines
            self._bytes = len(block) - block.rfind(b"\n") - 1 + (0 if newlines else self._bytes)
            return
        start = 0
        while start < len(block):
            if self.is_full:
                rest = block[start:]
                self.line += rest.count(b"\n")
                self._bytes = len(rest) - rest.rfind(b"\n") - 1
                return
            end = block.find(b"\n", start)
            stop = len(block) if end < 0 else end
            if self.line >= self.first:
                left = MAX_LINE * _UTF8_BYTES - len(self._current)
                self._current += block[start : min(stop, start + max(0, left))]
            self._bytes += stop - start
            if end >= 0:
                self._finish()
            start = stop + 1

    def end(self) -> None:
        """Finish the last line, which may lack a line end."""
        if self._bytes:
            self._finish()

    def _finish(self) -> None:
        if self.line >= self.first and not self.is_full:
            text = self._decoded().removesuffix("\r")
            kept = text[:MAX_LINE]
            if len(kept) < len(text) or len(self._current) < self._bytes:
                kept += f" [cut: the line has {self._bytes:,} bytes]"
            self.shown.append(f"{self.line:>6}\t{kept}")
            self._length += len(kept)
            self.is_full = len(self.shown) == self.limit or self._length > MAX_OUTPUT
        self.line += 1
        self._current.clear()
        self._bytes = 0

    def _decoded(self) -> str:
        data = bytes(self._current)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            if error.start >= len(data) - _UTF8_BYTES + 1 and len(data) < self._bytes:
                return data[: error.start].decode()  # cut within a character
            self.is_latin = True
            return data.decode("latin-1")

    def text(self, size: int) -> str:
        total = self.line - 1
        if not self.shown:
            return "[the file is empty]" if not total else f"[the file has only {total:,} lines]"
        last = self.first + len(self.shown) - 1
        notes = ["[some lines are not UTF-8 and are shown as Latin-1]"] if self.is_latin else []
        if self.is_full and (total > last or size > _COUNTED_SIZE):
            of = f" of {total:,}" if size <= _COUNTED_SIZE else ""
            notes.append(f"[lines {self.first:,} to {last:,}{of}: go on with offset={last + 1}]")
        return "\n".join((*self.shown, *notes))
