"""The SDK's streamed run, driven to its end."""

from __future__ import annotations

import asyncio
from typing import Any

from kantan_agents.waiting import wait_for_end


async def streamed_result(streamed: Any) -> Any:
    """Wait until a streamed run of the SDK is over, and return it as its result.

    What is of interest in its stream has been told by then, from the model calls themselves: there a slow
    consumer can hold the model up, while the SDK's own queue has no bound. So it is emptied here.

    Raises:
        Exception: What the run raised.
        asyncio.CancelledError: It was cancelled, and all its tasks have ended.
    """
    try:
        async for _ in streamed.stream_events():
            continue
    except BaseException:
        await _cancelled(streamed)
        raise
    return streamed


async def _cancelled(streamed: Any) -> None:
    # The SDK cancels by itself where its stream is cancelled. A second time would break off what its tasks
    # do on their way out: a connection would stay open.
    if not streamed.is_complete:
        streamed.cancel()
    task: asyncio.Task[Any] | None = streamed.run_loop_task
    if task is not None and task is not asyncio.current_task():
        await wait_for_end(task)
