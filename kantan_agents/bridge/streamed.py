"""The SDK's streamed run, driven to its end."""

from __future__ import annotations

import asyncio
from typing import Any

from kantan_agents.pipeline import Run
from kantan_agents.support.waiting import wait_for_end

_RUN_LOOP = object()


async def streamed_result(run: Run, streamed: Any, *, only_reader: bool) -> Any:
    """Wait until a streamed run of the SDK is over, and return it as its result.

    What is of interest in its stream has been told by then, from the model calls themselves: there a slow
    consumer can hold the model up, while the SDK's own queue has no bound. So it is emptied here.

    Args:
        run: The run.
        streamed: What the SDK's runner has returned.
        only_reader: Whether nobody else reads its stream.

    Raises:
        Exception: What the run raised.
        asyncio.CancelledError: It was cancelled, and all its tasks have ended.
    """
    if only_reader:
        run.state[_RUN_LOOP] = streamed.run_loop_task
    try:
        async for _ in streamed.stream_events():
            continue
    except BaseException:
        await _cancelled(streamed)
        raise
    return streamed


def nobody_reads_deltas(run: Run) -> bool:
    """Whether the SDK asks a model for a stream that only ``streamed_result`` reads, and throws away.

    A run that a tool or a guardrail streams by itself has a task of its own, and a reader.
    """
    task = run.state.get(_RUN_LOOP)
    return task is not None and task is asyncio.current_task()


async def _cancelled(streamed: Any) -> None:
    # The SDK cancels by itself where its stream is cancelled. A second time would break off what its tasks
    # do on their way out: a connection would stay open.
    if not streamed.is_complete:
        streamed.cancel()
    task: asyncio.Task[Any] | None = streamed.run_loop_task
    if task is not None and task is not asyncio.current_task():
        await wait_for_end(task)
