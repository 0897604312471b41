"""How often, how fast and how long a lost connection to an MCP server is made again."""

from __future__ import annotations

import random
from typing import Any

import attrs


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
