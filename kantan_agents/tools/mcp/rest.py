"""The rest of an MCP server after a failed reconnection, so that each run does not wait again."""

from __future__ import annotations

import time
from typing import Any

from kantan_agents.tools.mcp import backoff
from kantan_agents.tools.mcp.failures import text_of
from kantan_agents.tools.mcp.unavailable import UnavailableError


class Rest:
    """The rest of one server object; none at first.

    Attributes:
        failures: How many reconnections in a row have failed.
        until: When it ends, on the monotonic clock.
    """

    def __init__(self) -> None:
        self.failures = 0
        self.until = 0.0
        self._session: Any = None  # that the server had when the rest began
        self._error: BaseException | None = None

    def check(self, server: Any) -> None:
        """Check that the server may be asked.

        Raises:
            UnavailableError: It rests.
        """
        remaining = self.until - time.monotonic()
        if remaining <= 0:
            return
        session = getattr(server, "session", None)
        if session is not None and session is not self._session:
            return  # the user has connected it again
        reason = f"{self._reason()}; the next attempt is in {remaining:.0f} seconds"
        raise UnavailableError(reason) from self._error

    def begin(self, server: Any, error: BaseException) -> UnavailableError:
        """Begin a rest, or go on with the present one; return the error to raise."""
        self._error = error
        if self.until > time.monotonic():  # another run has seen the same failure
            return UnavailableError(self._reason())
        self.failures += 1
        self._session = getattr(server, "session", None)
        self.until = time.monotonic() + backoff.BACKOFF.rest(self.failures)
        return UnavailableError(self._reason())

    def _reason(self) -> str:
        return text_of(self._error) if self._error is not None else "it is not connected"
