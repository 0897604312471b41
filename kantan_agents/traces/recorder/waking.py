"""Wakes the writer for work, and flushes when it is done."""

from __future__ import annotations

import asyncio
import threading
import time
from contextvars import Context

import attrs

# Flushes do not cancel timers, so long ones would pile up.
_LONGEST_TIMER = 1.0


class Wake:
    """An event for one waiting thread; ``set`` never blocks, even in signal handlers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        """Wake the waiting thread, or the next one."""
        try:
            self._lock.release()
        except RuntimeError:
            return  # set already

    def wait(self, seconds: float) -> bool:
        """Wait for the event and clear it; return False after ``seconds``."""
        return self._lock.acquire(timeout=min(max(0.0, seconds), threading.TIMEOUT_MAX))


class FlushMarker:
    """A position in the queue that a flush waits for."""

    size = 0

    def __init__(self) -> None:
        self.is_abandoned = False
        self._wake = Wake()
        self._written = False

    def resolve(self, *, written: bool) -> None:
        """Wake the flush."""
        self._written = written
        self._wake.set()

    def wait(self, seconds: float) -> bool:
        """Return whether everything before it was written within ``seconds``."""
        self._wake.wait(seconds)
        self.is_abandoned = True
        return self._written


@attrs.define(eq=False)
class WriterWake:
    """Wakes the writer on request, or ``interval`` seconds after an item.

    ``sleeping``: the writer waits, and no item has arrived.
    """

    interval: float
    sleeping: bool = False
    urgent: bool = False
    _collecting_since: float | None = None  # time of the first item since the writer waits
    _wake: Wake = attrs.field(factory=Wake)

    def request_write(self) -> None:
        """Make the writer write immediately."""
        self.urgent = True
        self._wake.set()

    def begin_collecting(self) -> None:
        """Wake the writer after ``interval``, by a timer of the loop; without a loop, immediately.

        A thread that wakes waits for the GIL, often for many steps of the loop, and slows each. If no timer
        fires, the writer finds the items at its next check of the file.
        """
        self.sleeping = False
        self._collecting_since = since = time.monotonic()
        loop = asyncio._get_running_loop()
        if loop is None or not self.interval:
            self._wake.set()
            return
        if self.interval > _LONGEST_TIMER:
            return
        try:
            # In the next step of the loop, because this may be a destructor. In an empty context, so that the
            # timer does not keep a run in memory.
            loop.call_soon(loop.call_later, self.interval, self._end_collecting, since, context=Context())
        except RuntimeError:
            self._wake.set()

    def _end_collecting(self, since: float) -> None:
        if self._collecting_since == since:  # otherwise they are written already
            self._wake.set()

    def is_due(self) -> bool:
        """Return whether items were collected long enough without a wake-up."""
        since = self._collecting_since
        return since is not None and time.monotonic() - since >= self.interval

    def wait(self, seconds: float) -> bool:
        """Wait for a wake-up; return False after ``seconds``."""
        return self._wake.wait(seconds)

    def wait_for_more(self) -> None:
        """Wait until the interval has passed, or a write is requested."""
        since = self._collecting_since
        deadline = (time.monotonic() if since is None else since) + self.interval
        while not self.urgent and self._wake.wait(deadline - time.monotonic()):
            continue
        self.urgent = False
        self._collecting_since = None
