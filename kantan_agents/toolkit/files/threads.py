"""Runs file work in threads, which end when no one waits for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import anyio.to_thread

T = TypeVar("T")

SCAN_SECONDS = 60.0
"""A scan of many files then returns its results so far."""


class ScanStoppedError(Exception):
    """The call was canceled; never visible outside."""


class SearchStop:
    """Asks a thread to end."""

    __slots__ = ("_deadline", "is_set")

    def __init__(self, seconds: float = SCAN_SECONDS) -> None:
        self.is_set = False
        self._deadline = time.monotonic() + seconds

    def check(self) -> None:
        """Raise if the call was canceled."""
        if self.is_set:
            raise ScanStoppedError

    @property
    def is_late(self) -> bool:
        """Whether the time for a scan is over."""
        return time.monotonic() > self._deadline


async def in_thread(work: Callable[[SearchStop], T]) -> T:
    """Run work that only reads; after a cancellation the thread ends soon."""
    stop = SearchStop()
    try:
        return await anyio.to_thread.run_sync(work, stop, abandon_on_cancel=True)
    finally:
        stop.is_set = True


async def to_its_end(work: Callable[[], T]) -> T:
    """Run work that writes; once started, it finishes before a cancellation counts."""
    return await anyio.to_thread.run_sync(work)
