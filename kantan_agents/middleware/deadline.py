"""``Deadline``: limits the time of a run."""

from __future__ import annotations

import asyncio
import math
import time
from contextvars import ContextVar
from typing import Any

import attrs
from agents import ModelResponse

from kantan_agents.core.events import Event, TextDelta
from kantan_agents.core.interception import (
    Layers,
    Middleware,
    ModelCall,
    ModelNext,
    ToolCall,
    ToolNext,
    inherited_layers,
)
from kantan_agents.core.pipeline import Next, Run
from kantan_agents.errors import DeadlineExceededError
from kantan_agents.support.arguments import checked_number
from kantan_agents.support.waiting import wait_for_end


@attrs.define(eq=False)
class _Progress:
    """For the error."""

    model_calls: int = 0
    tool_calls: int = 0
    texts: list[str] = attrs.field(factory=list)


class _Limit(Middleware):
    """A point in time for a run and all runs that start inside it, even after its end.

    ``at`` is a time of ``time.monotonic``.
    """

    def __init__(self, seconds: float, elapsed: float, outer: _Limit | None) -> None:
        self.seconds = seconds
        self._around: Layers | None = inherited_layers.get() if outer is None else outer._around
        self.at = time.monotonic() + seconds - elapsed
        self._is_over = False
        self._inner: set[asyncio.Task[None]] = set()
        own = Layers(((_INHERITED, self.run),), (self.model_call,), (self.tool_call,))
        self._layers = own.inside(self._around)

    async def begin(self, run: Run, call_next: Next) -> None:
        """At the deadline, wait until the inner runs have ended as well."""
        try:
            await self.run(run, call_next)
        except DeadlineExceededError:
            if self._is_over:
                loop = asyncio.get_running_loop()
                await wait_for_end(*(task for task in [*self._inner] if task.get_loop() is loop))
            raise

    async def run(self, run: Run, call_next: Next) -> None:
        progress = run.state[self] = _Progress()
        if run.is_streamed and run.events is not None:
            run.events.handlers = (*run.events.handlers, _collector(run.id, progress.texts))
        tokens = _limit.set(self), inherited_layers.set(self._layers)
        try:
            # A separate task distinguishes the two cancellations: the deadline cancels the inner task, the
            # caller cancels this one.
            task = asyncio.create_task(_call(call_next, run))
        finally:
            _limit.reset(tokens[0])
            inherited_layers.reset(tokens[1])
        self._inner.add(task)
        task.add_done_callback(self._inner.discard)
        try:
            await asyncio.wait([task], timeout=max(self.at - time.monotonic(), 0.0))
        except asyncio.CancelledError:
            await _cancel_and_wait(task)
            raise
        if not task.done():
            self._is_over = True  # before the cancellation, so that no call starts during it
            failure = await _cancel_and_wait(task)
            raise self._error(run) from failure
        task.result()

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        """Count answered calls; after the deadline, raise."""
        self._check(call.run)
        answer = await call_next(call)
        self._progress(call.run).model_calls += 1
        return answer

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        """Count calls, even if they fail; after the deadline, raise."""
        self._check(call.run)
        try:
            return await call_next(call)
        finally:
            self._progress(call.run).tool_calls += 1

    def _check(self, run: Run) -> None:
        self._is_over = self._is_over or time.monotonic() >= self.at
        if self._is_over:
            raise self._error(run)

    def _error(self, run: Run) -> DeadlineExceededError:
        progress = self._progress(run)
        return DeadlineExceededError(
            agent=run.agent.name,
            seconds=self.seconds,
            model_calls=progress.model_calls,
            tool_calls=progress.tool_calls,
            text="".join(progress.texts),
        )

    def _progress(self, run: Run) -> _Progress:
        progress: _Progress = run.state.setdefault(self, _Progress())
        return progress


_INHERITED = "deadline of the outer run"
_limit: ContextVar[_Limit | None] = ContextVar("kantan_agents_deadline", default=None)


def seconds_left() -> float:
    """Until the deadline of the current run; infinity without one."""
    limit = _limit.get()
    return math.inf if limit is None else limit.at - time.monotonic()


class Deadline(Middleware):
    """Cancels a run that takes too long, including its tools and the runs that started inside it.

    A run inside another one has the same deadline, even if a task or ``asyncio.to_thread`` started it and the
    outer run has ended. If it has its own deadline, the earlier one applies. At the deadline, these runs are
    canceled as well, and no further model call or tool call starts. A sync tool runs in a thread, which
    cannot be interrupted: the run ends at the deadline, and the thread's result is discarded. A replay has no
    deadline.

    Args:
        seconds: Maximum duration, measured from when the run reaches this middleware. If another process
            resumes a durable run, the time since its start counts.

    Raises:
        InvalidOptionError: E75, ``seconds`` is not a number greater than 0.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = checked_number("seconds", seconds, above_zero=True)

    async def run(self, run: Run, call_next: Next) -> None:
        """Cancel the rest of the pipeline at the deadline.

        Raises:
            DeadlineExceededError: E82, the run was not complete at the deadline.
        """
        if (
            run._tape is not None and not run._tape.asks_models
        ):  # no user waits for a replay, and a debugger may pause it
            await call_next(run)
            return
        outer = _limit.get()
        if outer is not None and outer.at < time.monotonic() + self.seconds:
            await call_next(run)  # the earlier deadline of the outer run already applies
            return
        limit = run.state[self] = _Limit(self.seconds, run.elapsed, outer)
        await limit.begin(run, call_next)

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        """After the deadline, raise."""
        limit: _Limit | None = call.run.state.get(self)
        return await (call_next(call) if limit is None else limit.model_call(call, call_next))

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        """After the deadline, raise."""
        limit: _Limit | None = call.run.state.get(self)
        return await (call_next(call) if limit is None else limit.tool_call(call, call_next))

    def __repr__(self) -> str:
        return f"Deadline({self.seconds:g})"


async def _call(call_next: Next, run: Run) -> None:
    await call_next(run)


def _collector(run_id: str, texts: list[str]) -> Any:
    def collect(event: Event) -> None:
        if isinstance(event, TextDelta) and event.run_id == run_id and not event.internal:
            texts.append(event.text)

    return collect


async def _cancel_and_wait(task: asyncio.Task[Any]) -> BaseException | None:
    """Return the error that the task raised meanwhile."""
    task.cancel()
    await wait_for_end(task)
    return None if task.cancelled() else task.exception()
