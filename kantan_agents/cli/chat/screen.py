"""Writes streamed output, lines, and one status line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
from rich.console import Console
from rich.text import Text

from kantan_agents.cli.chat.row_end import RowEnd
from kantan_agents.cli.terminal.console import BAD, LABEL, plain
from kantan_agents.cli.terminal.plain import whole
from kantan_agents.support.invisible import ByCode

_ERASE = "\r\x1b[K"
# Index adds a row below; go up again, save the cursor, go below.
_BELOW = "\x1bD\x1b[A\x1b7\x1b[B\r"
_BACK = "\x1b8"


class Screen:
    """Writes to a terminal, until it is closed, without markup and control sequences of its input.

    Attributes:
        lock: Hold it to write or ask, so that no output lands in a question.
        shows_status: False in a pipe or on a terminal without a cursor.
    """

    def __init__(self, console: Console, *, notes: Console | None = None) -> None:
        self.lock = anyio.Lock()
        self.is_closed = False
        self._console = console
        self._notes = notes
        self._status = ""
        self._is_at_start = True
        self._row_end = RowEnd()
        self._pieces = ByCode()
        self.shows_status = notes is None and console.is_terminal and os.environ.get("TERM") != "dumb"

    def stream(self, piece: str) -> None:
        """Write a piece of an answer."""
        self._write_answer(self._pieces.feed(piece) if self._console.file.isatty() else whole(piece))

    def _write_answer(self, piece: str) -> None:
        if piece:
            self._clear_status()
            self._write(piece)
            self._is_at_start = piece.endswith("\n")
            if self.shows_status:
                self._row_end.follow(piece, self._console.width)

    def end_answer(self) -> None:
        """Start a new line, if needed."""
        self._write_answer(self._pieces.end())
        self._clear_status()
        if not self._is_at_start:
            self._write_answer("\n")

    def line(self, text: str | Text, style: str = "") -> None:
        """Write one line, cut to the terminal's width."""
        shown = plain(" ".join(text.split()), style) if isinstance(text, str) else text
        shown.no_wrap = True
        if self._notes is not None:
            self._print(shown, self._notes, is_folded=False)
            return
        self.end_answer()
        self._print(shown, self._console, is_folded=True)

    def block(self, text: str, style: str = "") -> None:
        """Write all lines in full."""
        if self._notes is None:
            self.end_answer()
        self._print(plain(text, style), self._notes or self._console, is_folded=False)

    def error(self, text: str) -> None:
        """Write an error in full."""
        self.block(f"error: {' '.join(text.split())}", BAD)

    def status(self, text: str) -> None:
        """Show a status until the next output."""
        if not self.shows_status or text == self._status:
            return
        width = self._console.width
        if not self._is_at_start and not self._row_end.may_leave(width):
            return
        self._clear_status()
        shown = plain(" ".join(text.split()), LABEL)
        shown.truncate(max(width - 1, 1), overflow="ellipsis")
        before, after = ("", "") if self._is_at_start else (_BELOW, _BACK)
        self._write(before)
        with self._until_closed():
            self._console.print(shown, end="", no_wrap=True, overflow="crop", crop=True)
        self._write(after)
        self._status = text

    def _clear_status(self) -> None:
        if self._status:
            self._status = ""
            self._write(_ERASE if self._is_at_start else f"{_BELOW}{_ERASE}{_BACK}")

    def _print(self, text: Text, console: Console, *, is_folded: bool) -> None:
        with self._until_closed():
            if is_folded:
                console.print(text, no_wrap=True, overflow="ellipsis", crop=True)
            else:
                console.print(text, soft_wrap=True)

    def _write(self, text: str) -> None:
        with self._until_closed():
            self._console.file.write(text)
            self._console.file.flush()

    @contextmanager
    def _until_closed(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError):  # the terminal or the stream is closed
            self.is_closed = True
