"""Limits for reconnecting to an MCP server."""

from __future__ import annotations

import random
import time
from typing import Any

import attrs

from kantan_agents.tools.mcp.failures import text_of
from kantan_agents.tools.mcp.unavailable import UnavailableError


@attrs.frozen
class Backoff:
    """The limits of one reconnection, and the rest after a failed one, in seconds.

    There is only one attempt right after a failed reconnection. The wait and the rest double each time.
    """

    attempts: int = 3
    first_wait: float = 0.2
    attempt: float = 10.0
    total: float = 15.0
    first_rest: float = 5.0
    longest_rest: float = 60.0

    def wait(self, attempt: int) -> float:
        """Return the wait before an attempt, 1 for the second."""
        return _jittered(self.first_wait * 2 ** (attempt - 1))

    def rest(self, failures: int) -> float:
        """Return the rest after failed reconnections."""
        return _jittered(min(self.first_rest * 2.0 ** min(failures - 1, 30), self.longest_rest))


def _jittered(seconds: float) -> float:
    # So that a service's processes do not all try at the same moment.
    return seconds * random.uniform(0.8, 1.2)  # noqa: S311 - no secret depends on it


BACKOFF = Backoff()


def limits_for(server: Any) -> Backoff:
    """Return the limits; a server may set its own start limit."""
    seconds = getattr(server, "kantan_start_seconds", None)
    if not isinstance(seconds, float):
        return BACKOFF
    # Only a server that fails quickly is tried again.
    return attrs.evolve(BACKOFF, attempt=seconds, total=seconds)


class Rest:
    """A server's rest, so that not each run waits again; ``until`` is on the monotonic clock."""

    def __init__(self) -> None:
        self.failures = 0
        self.until = 0.0
        self._session: Any = None  # the server's session at the start of the rest
        self._error: BaseException | None = None

    def check(self, server: Any) -> None:
        """Raise UnavailableError if the server rests."""
        remaining = self.until - time.monotonic()
        if remaining <= 0:
            return
        session = getattr(server, "session", None)
        if session is not None and session is not self._session:
            return  # the user has connected it again
        reason = f"{self._reason()}; the next attempt is in {remaining:.0f} seconds"
        raise UnavailableError(reason) from self._error

    def begin(self, server: Any, error: BaseException) -> UnavailableError:
        """Start or continue a rest; return the error to raise."""
        self._error = error
        if self.until > time.monotonic():  # another run has seen the same failure
            return UnavailableError(self._reason())
        self.failures += 1
        self._session = getattr(server, "session", None)
        self.until = time.monotonic() + BACKOFF.rest(self.failures)
        return UnavailableError(self._reason())

    def _reason(self) -> str:
        return text_of(self._error) if self._error is not None else "it is not connected"
