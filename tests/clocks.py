"""A clock that a test moves, so that the test decides how far a run gets before its deadline."""

from __future__ import annotations

import asyncio
from typing import Any

ENOUGH = 60.0  # a deadline that no test reaches without moving the clock
MORE = 100.0  # less than the HTTP client's own timeout


def let_pass(seconds: float = MORE) -> None:
    """Advance the running event loop's clock permanently; all timers that are due by then fire.

    A loop shared with other tests needs no reset, because later timers are set by the advanced clock.
    """
    loop: Any = asyncio.get_running_loop()
    if not hasattr(loop, "moved_by"):
        time, loop.moved_by = loop.time, 0.0
        loop.time = lambda: time() + loop.moved_by
    loop.moved_by += seconds
