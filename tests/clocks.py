"""A clock that a test moves: what a deadline ends has then always come as far as the test says."""

from __future__ import annotations

import asyncio

ENOUGH = 60.0  # a deadline that nothing reaches by itself
MORE = 100.0  # less than the HTTP client's own timeout


def let_pass(seconds: float = MORE) -> None:
    """Move the running event loop's clock on: all its timers that are due by then fire."""
    loop = asyncio.get_running_loop()
    time = loop.time
    loop.time = lambda: time() + seconds  # type: ignore[method-assign]
