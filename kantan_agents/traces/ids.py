"""Run ids and trace ids that sort by creation time: kantan-llm lists traces by descending id."""

from __future__ import annotations

import os
import time
from threading import Lock


class _Clock:
    """A strictly increasing clock of 60 bits: milliseconds and 1/4096 of a millisecond (244 ns)."""

    def __init__(self) -> None:
        self._last = 0
        self.renew_lock()

    def renew_lock(self) -> None:
        # After a fork, a thread of the parent may hold the old lock forever.
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
    """Return a UUIDv7 (RFC 9562) as 32 hexadecimal digits.

    Within a process, ids are strictly increasing, even if the clock goes back.
    """
    stamp = _clock.now()
    random = int.from_bytes(os.urandom(8), "big") >> 2
    value = (stamp >> 12) << 80 | 0x7 << 76 | (stamp & 0xFFF) << 64 | 0b10 << 62 | random
    return f"{value:032x}"


def trace_id_of(run_id: str) -> str:
    """Return the SDK's form of a run id."""
    return f"trace_{run_id}"
