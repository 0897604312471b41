"""``Terminal``: a program on a real pseudo-terminal, and what a person sees of it."""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import select
import struct
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyte
from typing_extensions import Self

from tests.programs import Preloaded, Program

PATIENCE = 120.0
INTERRUPT_SECONDS = 20.0
SCRIPT = Path(__file__).with_name("on_terminal.py")
HISTORY = 1000


class Terminal:
    """A terminal with a program in it; use it in a ``with`` statement.

    Attributes:
        written: Every byte that the program has written.
    """

    def __init__(
        self,
        preloaded: Preloaded,
        *arguments: str,
        env: Mapping[str, str],
        cwd: Path,
        columns: int = 80,
        lines: int = 24,
    ) -> None:
        self.written = b""
        self._master, slave = pty.openpty()
        self._size(columns, lines)
        self._screen = pyte.HistoryScreen(columns, lines, history=HISTORY, ratio=0.5)
        self._screen.write_process_input = self._reply  # type: ignore[method-assign]
        self._stream = pyte.ByteStream(self._screen)
        command: list[str | Path] = [SCRIPT, os.ttyname(slave), *arguments]
        self.program: Program = preloaded.popen(command, env=env, cwd=cwd)
        # Open until the program has it too: a terminal that nobody has open is one that was hung up.
        self._slave: int | None = slave
        self._is_open = True

    def _reply(self, data: str) -> None:
        os.write(self._master, data.encode())  # where the cursor is

    def _size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def resize(self, columns: int, lines: int = 24) -> None:
        self._screen.resize(lines, columns)
        self._size(columns, lines)

    def type(self, text: str, until: str = "", count: int = 1) -> str:
        """Type a text, and read until another one was shown so many times."""
        os.write(self._master, text.encode())
        return self.wait_for(until, count)

    def enter(self, text: str, until: str = "", count: int = 1) -> str:
        return self.type(f"{text}\r", until, count)

    def ask(self, question: str, answer: str, count: int = 1) -> str:
        """Enter a line, and read until its answer was shown and the next line can be entered."""
        self.enter(question, until=answer, count=count)
        return self.wait_for_prompt()

    @property
    def shown(self) -> str:
        """What is on the screen, below what has scrolled off it."""
        above = [_text(line, self._screen.columns) for line in self._screen.history.top]
        return "\n".join(line.rstrip() for line in [*above, *self._screen.display])

    @property
    def at_prompt(self) -> bool:
        return self._screen.display[self._screen.cursor.y].rstrip() == ">"

    def wait_for(self, text: str, count: int = 1) -> str:
        """Read until the text was shown so many times."""
        return self.wait_until(lambda: self._count(text) >= count, text)

    def _count(self, text: str) -> int:
        shown = self.shown
        return max(shown.count(text), shown.replace("\n", "").count(text))  # a long line goes on in the next

    def wait_for_prompt(self) -> str:
        return self.wait_until(lambda: self.at_prompt, "the prompt")

    def interrupt_until(self, text: str) -> str:
        """Press Ctrl-C, once more if need be: Python overlooks a signal just before it waits for a line."""
        self.type("\x03")
        end = time.monotonic() + INTERRUPT_SECONDS
        while not self._count(text) and self._read(end - time.monotonic()):
            pass
        if not self._count(text) and self._is_open:
            self.type("\x03")
        return self.wait_for(text)

    def wait_until(self, holds: Callable[[], bool], what: str) -> str:
        end = time.monotonic() + PATIENCE
        while not holds():
            if not self._read(end - time.monotonic()):
                raise AssertionError(f"never shown: {what}\n{self.shown}\n{self.written[-2000:]!r}")
        return self.shown

    def wait_for_end(self) -> int:
        """Read until the program ends, and return its exit status."""
        end = time.monotonic() + PATIENCE
        while self._is_open and self._read(end - time.monotonic()):
            pass
        return self.program.wait(PATIENCE)

    def _read(self, patience: float) -> bool:
        if not self._is_open or not select.select([self._master], [], [], max(patience, 0))[0]:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError as error:
            if error.errno != errno.EIO:  # the program has ended
                raise
            data = b""
        if self._slave is not None:
            os.close(self._slave)
            self._slave = None
        self.written += data
        self._stream.feed(data)
        return bool(data)

    def hang_up(self) -> None:
        """Close the terminal, as its window does."""
        if self._is_open:
            self._is_open = False
            os.close(self._master)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.program.kill()
        self.program.wait(PATIENCE)
        self.hang_up()
        for stream in (self.program.stdout, self.program.stderr):
            if stream is not None:
                stream.close()


def _text(line: Any, columns: int) -> str:
    return "".join(line[column].data for column in range(columns))
