"""Waiting for tasks that must not be left behind."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio


async def wait_for_end(*tasks: asyncio.Task[Any]) -> None:
    """Wait until all tasks have ended, also while whoever waits is cancelled, as often as it may be.

    Raises:
        asyncio.CancelledError: It was cancelled meanwhile; the tasks have ended all the same.
    """
    cancelled: asyncio.CancelledError | None = None
    while waiting := [task for task in tasks if not task.done()]:
        try:
            with anyio.CancelScope(shield=True):
                await asyncio.wait(waiting)
        except asyncio.CancelledError as error:  # noqa: PERF203 - as often as somebody cancels
            cancelled = error
    if cancelled is not None:
        raise cancelled
