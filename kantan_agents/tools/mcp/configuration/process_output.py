"""Other output of server processes."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO

from kantan_agents.support.log import get_logger

_MOST_BYTES = 65_536
_CHUNK = 65_536
_LONGEST_LINE = 80
_log = get_logger("kantan_agents.mcp")
_current: ContextVar[Nonsense | None] = ContextVar("kantan_agents_mcp_nonsense", default=None)
_installing = threading.Lock()


class StandardError:
    """The last 64 KiB of one server's standard error.

    A thread reads for each process, so that output neither fills the pipe, blocks the event loop nor reaches
    the user's terminal.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept = bytearray()
        self._dropped = 0

    @contextmanager
    def receiving(self) -> Iterator[TextIO]:
        """Yield a file for a process to inherit; closed here after its start."""
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
        """Return the last non-empty lines."""
        with self._lock:
            text = self._kept.decode("utf-8", "replace")
            dropped = self._dropped
        lines = text.splitlines()
        if dropped:  # the first may be the end of a secret that could not be masked
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


class Nonsense:
    """Lines on standard output that are not messages."""

    def __init__(self, server: str) -> None:
        self.count = 0
        self.first = ""
        self._server = server

    def watch(self) -> None:
        """Count the lines that ``mcp`` cannot parse in this task and its child tasks.

        ``mcp`` logs a traceback for each line, so a server that prints its progress would fill the log. This
        logs one warning without the line, which may contain anything.
        """
        _install()
        _current.set(self)

    def note(self, error: BaseException | None) -> None:
        """Count one line."""
        self.count += 1
        if self.count == 1:
            self.first = _line_of(error)
            _log.warning("mcp_server_wrote_no_message", server=self._server)


class _Counting(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        """Count and drop the record if it is about a watched server."""
        nonsense = _current.get()
        if nonsense is None or record.exc_info is None or record.levelno < logging.ERROR:
            return True
        if not str(record.msg).startswith("Failed to parse"):
            return True
        nonsense.note(record.exc_info[1])
        return False


_counting = _Counting()


def _install() -> None:
    with _installing:
        logging.getLogger("mcp.client.stdio").addFilter(_counting)  # once, however often it is called


def _line_of(error: BaseException | None) -> str:
    details = getattr(error, "errors", None)  # of pydantic
    if not callable(details):
        return ""
    line = next((one["input"] for one in details() if isinstance(one.get("input"), str)), "")
    return line[:_LONGEST_LINE]
