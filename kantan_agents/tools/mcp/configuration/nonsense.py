"""Counts the lines on standard output of a server that are not messages of MCP, instead of logging each."""

from __future__ import annotations

import logging
import threading
from contextvars import ContextVar

from kantan_agents.support.log import get_logger

_LONGEST = 80
_log = get_logger("kantan_agents.mcp")

_current: ContextVar[Nonsense | None] = ContextVar("kantan_agents_mcp_nonsense", default=None)


class Nonsense:
    """What one server has written to standard output besides messages.

    Attributes:
        count: The number of lines.
        first: The beginning of the first one; "" if that is not known.
    """

    def __init__(self, server: str) -> None:
        self.count = 0
        self.first = ""
        self._server = server

    def watch(self) -> None:
        """Count what the ``mcp`` package cannot parse in this task, and in those that it starts.

        The package logs an error with a traceback for each line. A server that prints its progress would fill
        the log, or the terminal of a program that configures no log. The first line is logged here, as a
        warning without its text, which may be anything.
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
        """Count the record and drop it, if it is about a line of a server that is watched."""
        nonsense = _current.get()
        if nonsense is None or record.exc_info is None or record.levelno < logging.ERROR:
            return True
        if not str(record.msg).startswith("Failed to parse"):
            return True
        nonsense.note(record.exc_info[1])
        return False


_installing = threading.Lock()
_counting = _Counting()


def _install() -> None:
    with _installing:
        logging.getLogger("mcp.client.stdio").addFilter(_counting)  # once, however often it is called


def _line_of(error: BaseException | None) -> str:
    details = getattr(error, "errors", None)  # of pydantic
    if not callable(details):
        return ""
    line = next((one["input"] for one in details() if isinstance(one.get("input"), str)), "")
    return line[:_LONGEST]
