"""Standard input, read without blocking the event loop."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from typing import Final

from kantan_agents.cli.terminal.inputs import STDIN
from kantan_agents.errors import FileArgumentError

_LONGEST: Final = 1_000_000


class Lines:
    """Reads lines on demand, in a daemon thread, because nothing can interrupt a read."""

    def __init__(self) -> None:
        if sys.stdin is None:
            raise FileArgumentError(path=STDIN, reason="there is no standard input")
        # A separate object: at exit Python could not close `sys.stdin` while a thread reads from it.
        self._file = os.fdopen(os.dup(sys.stdin.fileno()), "rb")
        self._wanted = threading.Semaphore(0)
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[bytes] | None = None
        self._thread = threading.Thread(target=self._read, name="lines", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while True:
            self._wanted.acquire()
            try:
                line = self._file.readline(_LONGEST)
            except (OSError, ValueError):
                line = b""
            try:
                self._loop.call_soon_threadsafe(self._arrived, line)
            except RuntimeError:  # the loop has ended meanwhile
                return
            if not line:
                return

    def _arrived(self, line: bytes) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(line)

    async def next(self) -> str:
        """Return the next line; EOFError after the last one or ``stop``."""
        self._future = self._loop.create_future()
        self._wanted.release()
        line = await self._future
        if not line:
            raise EOFError
        if len(line) == _LONGEST and not line.endswith(b"\n"):
            raise FileArgumentError(path=STDIN, reason=f"a line has more than {_LONGEST} bytes")
        try:
            return line.decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise FileArgumentError(path=STDIN, reason="it is not UTF-8 text") from error

    def stop(self) -> None:
        """Let ``next`` end."""
        self._arrived(b"")
