"""A clock that a test moves: what a deadline ends has then always come as far as the test says."""

from __future__ import annotations

import asyncio
from typing import Any

ENOUGH = 60.0  # a deadline that nothing reaches by itself
MORE = 100.0  # less than the HTTP client's own timeout


def let_pass(seconds: float = MORE) -> None:
    """Move the running event loop's clock on, for good: all its timers that are due by then fire.

    A loop that other tests use as well needs no more than that: its timers are set by the moved clock.
    """
    loop: Any = asyncio.get_running_loop()
    if not hasattr(loop, "moved_by"):
        time, loop.moved_by = loop.time, 0.0
        loop.time = lambda: time() + loop.moved_by
    loop.moved_by += seconds
