"""``Flights``: sends one of several equal requests."""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import Any

import attrs

from kantan_agents.middleware.signal import Signal


@attrs.define(eq=False)
class Seat:
    """One of several equal requests.

    The first one leads and is sent. ``signal`` is set when its answer is in ``body``, or when this one has to
    be sent.
    """

    key: str
    leads: bool
    signal: Signal = attrs.field(factory=Signal)
    body: Any = None


class Flights:
    """Requests in flight, and the equal ones that wait. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._open: dict[str, deque[Seat]] = {}

    @property
    def count(self) -> int:
        """Number of requests in flight."""
        return len(self._open)

    def board(self, key: str) -> Seat:
        """Join; the first one leads."""
        with self._lock:
            waiting = self._open.get(key)
            if waiting is None:
                self._open[key] = deque()
                return Seat(key, leads=True)
            seat = Seat(key, leads=False)
            waiting.append(seat)
            return seat

    def land(self, seat: Seat, body: bytes | None) -> None:
        """Give the leader's answer to the others; without one, all are sent."""
        with self._lock:
            for waiting in self._open.pop(seat.key, ()):
                waiting.body = body
                waiting.signal.set()

    def leave(self, seat: Seat) -> None:
        """Leave without an answer, as after a cancellation; the next one leads."""
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
