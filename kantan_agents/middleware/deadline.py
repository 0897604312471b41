"""``Deadline``: limit the time of a run, including its tools and nested runs."""

from __future__ import annotations

import asyncio
import time
from contextvars import ContextVar
from typing import Any

import attrs
from agents import ModelResponse

from kantan_agents.errors import DeadlineExceededError
from kantan_agents.events import Event, TextDelta
from kantan_agents.interception import Middleware, ModelCall, ModelNext, ToolCall, ToolNext
from kantan_agents.pipeline import Next, Run
from kantan_agents.support.arguments import checked_number
from kantan_agents.support.waiting import wait_for_end


@attrs.frozen
class _Expiry:
    at: float
    seconds: float

    @classmethod
    def of(cls, seconds: float) -> _Expiry:
        """Return the earlier deadline: ``seconds`` from now, or that of the outer run."""
        own = cls(time.monotonic() + seconds, seconds)
        outer = _expiry.get()
        return outer if outer is not None and outer.at < own.at else own

    @property
    def left(self) -> float:
        return max(self.at - time.monotonic(), 0.0)


_expiry: ContextVar[_Expiry | None] = ContextVar("kantan_agents_deadline", default=None)


@attrs.define(eq=False)
class _Progress:
    """What a run has done so far; the error reports it."""

    model_calls: int = 0
    tool_calls: int = 0
    texts: list[str] = attrs.field(factory=list)


class Deadline(Middleware):
    """Cancels a run that takes too long, including its tools and the runs that they started.

    A nested run with its own deadline uses the earlier of the two. A sync tool runs in a thread, which cannot
    be interrupted: the run ends at the deadline, and the thread's result is discarded.

    Args:
        seconds: Maximum duration, measured from when the run reaches this middleware.

    Raises:
        InvalidOptionError: E75, ``seconds`` is not a number greater than 0.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = checked_number("seconds", seconds, above_zero=True)

    async def run(self, run: Run, call_next: Next) -> None:
        """Run the rest of the pipeline, and cancel it at the deadline.

        Raises:
            DeadlineExceededError: E82, the run was not complete at the deadline.
        """
        progress = run.state[self] = _Progress()
        if run.is_streamed and run.events is not None:
            run.events.handlers = (*run.events.handlers, _collector(run.id, progress.texts))
        expiry = _Expiry.of(self.seconds)
        token = _expiry.set(expiry)
        try:
            # A separate task distinguishes the two cancellations: the deadline cancels the inner task, the
            # caller cancels this one.
            task = asyncio.create_task(_call(call_next, run))
        finally:
            _expiry.reset(token)
        try:
            await asyncio.wait([task], timeout=expiry.left)
        except asyncio.CancelledError:
            await _cancel_and_wait(task)
            raise
        if not task.done():
            failure = await _cancel_and_wait(task)
            raise DeadlineExceededError(
                agent=run.agent.name,
                seconds=expiry.seconds,
                model_calls=progress.model_calls,
                tool_calls=progress.tool_calls,
                text="".join(progress.texts),
            ) from failure
        task.result()

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        """Make the call and count it once it is answered."""
        answer = await call_next(call)
        self._progress(call.run).model_calls += 1
        return answer

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        """Make the call and count it, even if it fails."""
        try:
            return await call_next(call)
        finally:
            self._progress(call.run).tool_calls += 1

    def _progress(self, run: Run) -> _Progress:
        progress: _Progress = run.state.setdefault(self, _Progress())
        return progress

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
    """Cancel a task, wait until it has ended, and return the error it raised while it was cancelled."""
    task.cancel()
    await wait_for_end(task)
    return None if task.cancelled() else task.exception()
