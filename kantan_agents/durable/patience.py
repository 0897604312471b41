"""Retries for a minute while the database is away."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from kantan_agents.errors import DurableDatabaseError
from kantan_agents.support.log import get_logger

PATIENCE = 60.0
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0

_log = get_logger("kantan_agents.durable")
T = TypeVar("T")


async def patiently(attempt: Callable[[], Awaitable[T]], may_repeat: Callable[[], bool] = lambda: True) -> T:
    """Return the result of an idempotent attempt, repeated while the database is away; raises E156."""
    end, pause = time.monotonic() + PATIENCE, _FIRST_PAUSE
    while True:
        try:
            return await attempt()
        except DurableDatabaseError as error:
            if not error.is_away or not may_repeat() or time.monotonic() + pause > end:
                raise
            _log.warning("database of durable runs is away, trying again", reason=error.reason)
        await anyio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
