"""How often, how fast and how long a lost connection to an MCP server is made again, and when it rests."""

from __future__ import annotations

import random
import time
from typing import Any

import attrs

from kantan_agents.tools.mcp.failures import text_of
from kantan_agents.tools.mcp.unavailable import UnavailableError


@attrs.frozen
class Backoff:
    """The limits of one reconnection, and the rest after one that failed. All times are in seconds.

    Attributes:
        attempts: How many attempts one reconnection makes; a single one right after a failed reconnection.
        first_wait: The wait before the second attempt. Each further wait is twice as long.
        attempt: How long one attempt may take.
        total: How long all attempts and waits may take.
        first_rest: How long nobody tries again after a failed reconnection. Each further one doubles it.
        longest_rest: The longest such time.
    """

    attempts: int = 3
    first_wait: float = 0.2
    attempt: float = 10.0
    total: float = 15.0
    first_rest: float = 5.0
    longest_rest: float = 60.0

    def wait(self, attempt: int) -> float:
        """Return the wait before an attempt, 1 for the second one."""
        return _jittered(self.first_wait * 2 ** (attempt - 1))

    def rest(self, failures: int) -> float:
        """Return the rest after so many failed reconnections in a row."""
        return _jittered(min(self.first_rest * 2.0 ** min(failures - 1, 30), self.longest_rest))


def _jittered(seconds: float) -> float:
    # So that the processes of a service do not all try at the same moment.
    return seconds * random.uniform(0.8, 1.2)  # noqa: S311 - no secret depends on it


BACKOFF = Backoff()


def limits_for(server: Any) -> Backoff:
    """Return the limits for one server object, which may have its own time to start."""
    seconds = getattr(server, "kantan_start_seconds", None)
    if not isinstance(seconds, float):
        return BACKOFF
    # A server that fails at once is tried again; one that has used up its time is not.
    return attrs.evolve(BACKOFF, attempt=seconds, total=seconds)


class Rest:
    """The rest of one server object, so that each run does not wait again; none at first.

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
        self.until = time.monotonic() + BACKOFF.rest(self.failures)
        return UnavailableError(self._reason())

    def _reason(self) -> str:
        return text_of(self._error) if self._error is not None else "it is not connected"
