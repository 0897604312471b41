"""Waits for tasks that must finish even if the waiting task is cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio


async def wait_for_end(*tasks: asyncio.Task[Any]) -> None:
    """Wait until all tasks have ended, however often the waiting task is cancelled meanwhile.

    Raises:
        asyncio.CancelledError: The waiting task was cancelled. All ``tasks`` have ended nevertheless.
    """
    cancelled: asyncio.CancelledError | None = None
    while waiting := [task for task in tasks if not task.done()]:
        try:
            with anyio.CancelScope(shield=True):
                await asyncio.wait(waiting)
        except asyncio.CancelledError as error:  # noqa: PERF203 - each cancellation must be caught
            cancelled = error
    if cancelled is not None:
        raise cancelled
