"""Drives a streamed run of the SDK to its end."""

from __future__ import annotations

import asyncio
from typing import Any

from kantan_agents.agent.cancelling import cancellations_of
from kantan_agents.core.answers import CUT_OFF
from kantan_agents.core.events.buffer import EventBuffer
from kantan_agents.core.pipeline import Run
from kantan_agents.models.finish_reasons import finish_reason, mark_cut_off
from kantan_agents.support.waiting import wait_for_end

_RUN_LOOP = object()
_STOP = object()


class StopAfterTurn:
    """Stops a streamed run between two turns, at its reader's request.

    The next turn waits until the reader has handled all events of the last one, so that it can stop at any of
    them.
    """

    def __init__(self, buffer: EventBuffer) -> None:
        self._buffer = buffer
        self._is_requested = False
        self._streamed: Any = None

    def watch(self, run: Run) -> None:
        """Take responsibility for a run that is about to start."""
        run.state[_STOP] = self

    def begin(self, streamed: Any) -> None:
        """Take responsibility for its stream; a middleware may run it several times."""
        self._streamed = streamed
        if streamed.run_loop_task is not None:
            streamed.run_loop_task.add_done_callback(lambda _: self._buffer.wake())
        if self._is_requested:
            streamed.cancel(mode="after_turn")

    async def wait_before_turn(self) -> None:
        """Wait until the reader can no longer stop after this turn."""
        await self._buffer.wait_until_read(self._has_no_next_turn)

    def _has_no_next_turn(self) -> bool:
        task: asyncio.Task[Any] | None = self._streamed.run_loop_task
        return self._is_requested or (task is not None and task.done())

    def request(self) -> None:
        """Stop after the current turn, or before the first one."""
        self._is_requested = True
        self._buffer.wake()
        if self._streamed is not None and not self._streamed.is_complete:
            self._streamed.cancel(mode="after_turn")

    def has_stopped(self, streamed: Any) -> bool:
        """Return whether a finished run was stopped before its answer."""
        return self._is_requested and streamed.final_output is None and not streamed.interruptions


async def drain_streamed_run(run: Run, streamed: Any, *, only_reader: bool) -> Any:
    """Return the result of a streamed SDK run at its end, or raise its error.

    Model calls emit the events, so a slow consumer slows down the model. The SDK's event queue is unbounded,
    so it is drained. After a cancellation, all tasks have ended.
    """
    if only_reader:
        run.state[_RUN_LOOP] = streamed.run_loop_task
    stop: StopAfterTurn | None = run.state.get(_STOP)
    if stop is not None:
        stop.begin(streamed)
    cancellations = cancellations_of(asyncio.current_task())
    events = streamed.stream_events()
    try:
        last = await _read(events, stop)
    except BaseException:
        await _cancelled(streamed)
        if hasattr(events, "aclose"):
            await events.aclose()
        raise
    # The SDK ends the stream in silence if a model or middleware raises CancelledError, or at a cancellation
    # while it waits for its task. There is no answer then.
    task: asyncio.Task[Any] | None = streamed.run_loop_task
    if task is not None and task.cancelled():
        await task
    if cancellations_of(asyncio.current_task()) > cancellations:
        raise asyncio.CancelledError
    reason = finish_reason(last)
    if reason in CUT_OFF and streamed.raw_responses:
        # The SDK derives the answer from the response, which may have no item that reports the cut.
        mark_cut_off(streamed.raw_responses[-1], reason)
    run.is_stopped = stop is not None and stop.has_stopped(streamed)
    return streamed


async def _read(events: Any, stop: StopAfterTurn | None) -> Any:
    last = None
    async for event in events:
        if getattr(event, "type", None) != "raw_response_event":
            if stop is not None:
                # Before the next turn, the SDK waits until its events are handled.
                await stop.wait_before_turn()
        elif getattr(event.data, "type", None) == "response.completed":
            last = event.data.response
    return last


def are_deltas_discarded(run: Run) -> bool:
    """Return whether only ``drain_streamed_run`` reads the model call's stream.

    A run streamed by a tool or guardrail has a separate task.
    """
    task = run.state.get(_RUN_LOOP)
    return task is not None and task is asyncio.current_task()


async def _cancelled(streamed: Any) -> None:
    # The SDK cancels the run with its stream. A second cancellation would interrupt the clean-up and leave a
    # connection open.
    if not streamed.is_complete:
        streamed.cancel()
    task: asyncio.Task[Any] | None = streamed.run_loop_task
    if task is not None and task is not asyncio.current_task():
        await wait_for_end(task)
