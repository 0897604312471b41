"""A run whose events are read while it is running."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Generic, Literal, TypeAlias

from typing_extensions import Self

from kantan_agents.agent.bridge import StopAfterTurn
from kantan_agents.agent.running.no_event_loop import no_event_loop
from kantan_agents.core.events import Event, Handler, TextDelta
from kantan_agents.core.events.buffer import EventBuffer
from kantan_agents.core.events.observers import WithRawEvents
from kantan_agents.core.pipeline import OutputT_co, Run, RunContext
from kantan_agents.errors import InvalidOptionError, StreamUsageError
from kantan_agents.support.waiting import wait_for_end

BUFFERED = 64
"""The number of unread events above which the run waits for its reader."""

Drive: TypeAlias = Callable[[Handler], tuple[Run, Callable[[], Awaitable[RunContext[OutputT_co]]]]]
"""Creates a run whose events go to a handler; returns the run and a function that drives it."""


async def _awaited(start: Callable[[], Awaitable[RunContext[OutputT_co]]]) -> RunContext[OutputT_co]:
    return await start()


class _Events:
    """Iterator over the events of a run. A generator would have to be closed by a reader that stops early."""

    def __init__(self, next_event: Callable[[], Awaitable[Event | None]], leave: Callable[[], None]) -> None:
        self._next = next_event
        self._leave = leave

    def __del__(self) -> None:
        self._leave()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        event = await self._next()
        if event is None:
            raise StopAsyncIteration
        return event


class RunStream(Generic[OutputT_co]):
    """A streamed run, returned by ``agent.stream``: an async context manager and an async iterator of events.

        async with agent.stream("Hello") as run:
            async for event in run:
                ...
            run.context

    Entering the block starts the run. Leaving the block early cancels the run and waits until it has ended.
    The run waits while more than 64 events are unread, and between two turns until all events are read,
    unless the reader has left the loop. After the last event the loop ends, or raises the error of the run.
    """

    def __init__(self, drive: Drive[OutputT_co], *, raw_events: bool = False) -> None:
        self._drive = drive
        self._has_raw_events = raw_events
        self._run: Run | None = None
        self._task: asyncio.Task[RunContext[OutputT_co]] | None = None
        self._is_read = False
        self._is_cancelled = False

    async def __aenter__(self) -> Self:
        if self._task is not None:
            raise StreamUsageError(reason="it can be entered once; call agent.stream again for another run")
        if asyncio._get_running_loop() is None:
            raise no_event_loop()
        self._buffer = EventBuffer(BUFFERED)
        self._stop = StopAfterTurn(self._buffer)
        self._run, start = self._drive(
            WithRawEvents(self._receive) if self._has_raw_events else self._receive
        )
        self._stop.watch(self._run)
        self._task = asyncio.create_task(_awaited(start))
        self._task.add_done_callback(lambda _: self._buffer.close())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._buffer.clear()  # first, so that a run that waits for its reader continues
        task = self._started()
        if not task.done():
            self.cancel()
            await wait_for_end(task)
        if not task.cancelled():
            task.exception()  # retrieved, or asyncio would log the error of a run that was left early

    def _receive(self, event: Event) -> Awaitable[None] | None:
        return None if event.internal else self._buffer.put(event)

    def __aiter__(self) -> AsyncIterator[Event]:
        self._started()
        if self._is_read:
            raise StreamUsageError(reason="its events can be read once")
        self._is_read = True
        return _Events(self._next, self._buffer.leave)

    async def _next(self) -> Event | None:
        event = await self._buffer.get()
        if event is None:
            task = self._started()
            await asyncio.wait([task])
            if not task.cancelled():
                task.result()
        return event

    async def text_deltas(self) -> AsyncIterator[str]:
        """Yield the pieces of the answer as the model writes them, of this run only and not of nested runs.

        Raises:
            Exception: The error of the run.
        """
        async for event in self:
            if isinstance(event, TextDelta) and event.run_id == self.id:
                yield event.text

    def _started(self) -> asyncio.Task[RunContext[OutputT_co]]:
        if self._task is None:
            raise StreamUsageError(reason="it has not begun; use `async with agent.stream(...) as run:`")
        return self._task

    @property
    def id(self) -> str:
        """The run's id."""
        self._started()
        return self._run.id if self._run is not None else ""

    @property
    def context(self) -> RunContext[OutputT_co]:
        """The context of the finished run, as ``run_async`` returns it.

        Raises:
            StreamUsageError: E81, the run is not over; read its events to the end first.
            Exception: The error of the run.
        """
        task = self._started()
        if not task.done():
            raise StreamUsageError(reason="it is not over, so its context is not complete; read all events")
        if task.cancelled():
            raise StreamUsageError(reason="it was cancelled, so there is no context")
        return task.result()

    def cancel(self, mode: Literal["immediate", "after_turn"] = "immediate") -> None:
        """Cancel the run. Its remaining events can still be read; then the loop ends.

        Nothing happens to a run that is over, or that is being canceled.

        Args:
            mode: ``"immediate"`` cancels the current work, and undoes the run's changes to the context.
                ``"after_turn"`` lets the current turn finish: the model's answer and its tool calls. The run
                then counts as finished: ``run.context["result"]`` has the result so far, with None as the
                final output. ``to_state()`` and ``to_input_list()`` of the result continue it. If the turn
                gives the final answer, the run finishes as usual.

        Raises:
            StreamUsageError: E81, the run has not started.
            InvalidOptionError: E75, ``mode`` is neither of the two.
        """
        task = self._started()
        if mode not in ("immediate", "after_turn"):
            raise InvalidOptionError(option="mode", reason=f"must be immediate or after_turn, not {mode!r}")
        if mode == "after_turn":
            self._stop.request()
        elif not self._is_cancelled:  # a second cancel would interrupt the cleanup
            self._is_cancelled = True
            task.cancel()

    def __repr__(self) -> str:
        if self._run is None or self._task is None:
            return "<RunStream, not begun>"
        return f"<RunStream of {self._run!r}, {'over' if self._task.done() else 'under way'}>"
