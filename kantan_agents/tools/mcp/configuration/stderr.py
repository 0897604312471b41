"""Keeps the end of what the processes of a server write to standard error."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

_MOST_BYTES = 65_536
_CHUNK = 65_536


class StandardError:
    """The last 64 KiB of standard error of one server, of all its processes.

    A thread reads for each process, so that a server that writes much neither waits for a full pipe nor keeps
    the event loop busy, and writes nothing to the user's terminal.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept = bytearray()
        self._dropped = 0

    @contextmanager
    def receiving(self) -> Iterator[TextIO]:
        """Yield a file for a process to inherit; it is closed here when the process has been started."""
        reading, writing = os.pipe()
        try:
            threading.Thread(
                target=self._read, args=(reading,), name="kantan_agents_mcp_stderr", daemon=True
            ).start()
        except RuntimeError:  # the interpreter is exiting
            os.close(reading)
            os.close(writing)
            raise
        with os.fdopen(writing, "w", encoding="utf-8") as file:
            yield file

    def lines(self, most: int) -> list[str]:
        """Return the last lines, at most ``most``, without the empty ones."""
        with self._lock:
            text = self._kept.decode("utf-8", "replace")
            dropped = self._dropped
        lines = text.splitlines()
        if dropped:  # the first may be the end of a line, and of a secret that could not be masked
            lines = lines[1:]
        return [line for line in lines if line.strip()][-most:]

    def _read(self, descriptor: int) -> None:
        try:
            while True:
                chunk = os.read(descriptor, _CHUNK)
                if not chunk:
                    return
                with self._lock:
                    self._kept += chunk
                    beyond = len(self._kept) - _MOST_BYTES
                    if beyond > 0:
                        del self._kept[:beyond]
                        self._dropped += beyond
        finally:
            os.close(descriptor)

    def __repr__(self) -> str:
        return f"StandardError({len(self._kept)} bytes)"
