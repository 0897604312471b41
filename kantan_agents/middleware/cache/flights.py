"""``Flights``: of equal requests at the same time, one is made. It is thread-safe."""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import Any

import attrs

from kantan_agents.middleware.signal import Signal


@attrs.define(eq=False)
class Seat:
    """A request among equal ones.

    Attributes:
        key: Their key.
        leads: Whether this is the one that is made.
        signal: Wakes it once there is an answer, or once it is to be made itself.
        body: The stored form of the answer that another one has got; None if it has to be made.
    """

    key: str
    leads: bool
    signal: Signal = attrs.field(factory=Signal)
    body: Any = None


class Flights:
    """The requests that are being made, each with the equal ones that wait for its answer."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._open: dict[str, deque[Seat]] = {}

    @property
    def count(self) -> int:
        """How many requests are being made."""
        return len(self._open)

    def board(self, key: str) -> Seat:
        """Join the equal requests; the first one leads."""
        with self._lock:
            waiting = self._open.get(key)
            if waiting is None:
                self._open[key] = deque()
                return Seat(key, leads=True)
            seat = Seat(key, leads=False)
            waiting.append(seat)
            return seat

    def land(self, seat: Seat, body: bytes | None) -> None:
        """Give the answer of the leader to the others; without one, each makes its own request."""
        with self._lock:
            for waiting in self._open.pop(seat.key, ()):
                waiting.body = body
                waiting.signal.set()

    def leave(self, seat: Seat) -> None:
        """Leave without an answer, as after a cancellation; another one makes the request then."""
        with self._lock:
            waiting = self._open.get(seat.key)
            if waiting is None:
                return
            if not seat.leads:
                if seat in waiting:
                    waiting.remove(seat)
                return
            while waiting:
                next_one = waiting.popleft()
                next_one.leads = True
                if next_one.signal.set():
                    return
            del self._open[seat.key]
