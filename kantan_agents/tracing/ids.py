"""Run and trace ids that sort by the time they were made.

kantan-llm lists traces with ``ORDER BY id DESC``; with random ids the newest one cannot be found.
"""

from __future__ import annotations

import os
import time
from threading import Lock


class _Clock:
    """Time in 60 bits, milliseconds and 1/4096 of one (244 ns), that never shows a time twice."""

    def __init__(self) -> None:
        self._last = 0
        self.renew_lock()

    def renew_lock(self) -> None:
        # After a fork: a thread of the parent may have held it, nobody would ever release it.
        self._lock = Lock()

    def now(self) -> int:
        stamp = (time.time_ns() << 12) // 1_000_000
        with self._lock:
            self._last = stamp if stamp > self._last else self._last + 1
            return self._last


_clock = _Clock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_clock.renew_lock)


def new_run_id() -> str:
    """Return 32 hexadecimal digits of a UUIDv7 (RFC 9562): later ids sort after earlier ones.

    48 bits of milliseconds, 12 bits of their fraction, 62 random bits. Within a process the order is
    strict, also when the clock stands still or goes back.
    """
    stamp = _clock.now()
    random = int.from_bytes(os.urandom(8), "big") >> 2
    value = (stamp >> 12) << 80 | 0x7 << 76 | (stamp & 0xFFF) << 64 | 0b10 << 62 | random
    return f"{value:032x}"


def trace_id_of(run_id: str) -> str:
    """Return the SDK's form of a trace id for a run id."""
    return f"trace_{run_id}"
