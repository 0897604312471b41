"""Waits even if the waiting task is canceled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import anyio
from anyio.to_thread import run_sync

if TYPE_CHECKING:
    import asyncio


async def wait_for_end(*tasks: asyncio.Task[Any]) -> None:
    """Raise a cancellation only after the end."""
    # Imported here, as below: commands without an event loop import this module too.
    import asyncio

    cancelled: asyncio.CancelledError | None = None
    while waiting := [task for task in tasks if not task.done()]:
        try:
            with anyio.CancelScope(shield=True):
                await asyncio.wait(waiting)
        except asyncio.CancelledError as error:  # noqa: PERF203 - each cancellation must be caught
            cancelled = error
    if cancelled is not None:
        raise cancelled


async def run_to_end(function: Callable[[], object]) -> None:
    """Call it in a dedicated thread; raise a cancellation only after its end."""
    import asyncio

    # Not one of the shared threads: in a busy service, they may all be taken.
    call = asyncio.create_task(run_sync(function, limiter=anyio.CapacityLimiter(1)))
    try:
        await wait_for_end(call)
    finally:
        call.result()
