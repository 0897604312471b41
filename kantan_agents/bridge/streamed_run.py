"""Drives a streamed run of the SDK to its end."""

from __future__ import annotations

import asyncio
from typing import Any

from kantan_agents.pipeline import Run
from kantan_agents.support.cancelling import cancellations_of
from kantan_agents.support.waiting import wait_for_end

_RUN_LOOP = object()


async def drain_streamed_run(run: Run, streamed: Any, *, only_reader: bool) -> Any:
    """Wait for the end of a streamed SDK run and return it as the result.

    Events are emitted by the model calls themselves, where a slow consumer slows down the model. The SDK's
    own event queue has no bound, so it is drained and its events are discarded.

    Args:
        run: The run.
        streamed: The SDK's ``RunResultStreaming``.
        only_reader: Whether nothing else reads its stream.

    Raises:
        Exception: Any error of the run.
        asyncio.CancelledError: The run was cancelled; all its tasks have ended.
    """
    if only_reader:
        run.state[_RUN_LOOP] = streamed.run_loop_task
    cancellations = cancellations_of(asyncio.current_task())
    try:
        async for _ in streamed.stream_events():
            continue
    except BaseException:
        await _cancelled(streamed)
        raise
    # The SDK ends the stream in silence if a model or a middleware raises CancelledError, or if the run is
    # cancelled while the SDK waits for the end of its task. There is no answer then.
    task: asyncio.Task[Any] | None = streamed.run_loop_task
    if task is not None and task.cancelled():
        await task
    if cancellations_of(asyncio.current_task()) > cancellations:
        raise asyncio.CancelledError
    return streamed


def are_deltas_discarded(run: Run) -> bool:
    """Return whether the current model call streams only for ``drain_streamed_run``, which discards it.

    A run that a tool or a guardrail streams has a task and a reader of its own.
    """
    task = run.state.get(_RUN_LOOP)
    return task is not None and task is asyncio.current_task()


async def _cancelled(streamed: Any) -> None:
    # The SDK cancels the run itself when its stream is cancelled. A second cancellation would interrupt the
    # clean-up of its tasks and leave a connection open.
    if not streamed.is_complete:
        streamed.cancel()
    task: asyncio.Task[Any] | None = streamed.run_loop_task
    if task is not None and task is not asyncio.current_task():
        await wait_for_end(task)
