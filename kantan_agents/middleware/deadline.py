"""``Deadline``: the time a run may take, with all it starts."""

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
        """Return the earlier one: in ``seconds`` from now, or that of the run this one is started in."""
        own = cls(time.monotonic() + seconds, seconds)
        outer = _expiry.get()
        return outer if outer is not None and outer.at < own.at else own

    @property
    def left(self) -> float:
        return max(self.at - time.monotonic(), 0.0)


_expiry: ContextVar[_Expiry | None] = ContextVar("kantan_agents_deadline", default=None)


@attrs.define(eq=False)
class _Done:
    """What a run has done so far."""

    model_calls: int = 0
    tool_calls: int = 0
    texts: list[str] = attrs.field(factory=list)


class Deadline(Middleware):
    """Ends a run that is not over in time, with its tools and with the runs they have started.

    A run within the run that has a deadline of its own keeps the earlier of the two. A sync tool runs in a
    thread, and a thread cannot be interrupted: it works on unheard, but the run ends all the same.

    Args:
        seconds: How long a run may take, from where this middleware stands.

    Raises:
        InvalidOptionError: E75, ``seconds`` is not a number greater than 0.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = checked_number("seconds", seconds, above_zero=True)

    async def run(self, run: Run, call_next: Next) -> None:
        """Let the run go on until the deadline.

        Raises:
            DeadlineExceededError: E82, it was not over by then.
        """
        done = run.state[self] = _Done()
        if run.is_streamed and run.events is not None:
            run.events.handlers = (*run.events.handlers, _collector(run.id, done.texts))
        expiry = _Expiry.of(self.seconds)
        token = _expiry.set(expiry)
        try:
            # In a task of its own: then whoever is cancelled tells why, the run inside by the deadline, this
            # one from outside.
            task = asyncio.create_task(_awaited(call_next, run))
        finally:
            _expiry.reset(token)
        try:
            await asyncio.wait([task], timeout=expiry.left)
        except asyncio.CancelledError:
            await _ended(task)
            raise
        if not task.done():
            failure = await _ended(task)
            raise DeadlineExceededError(
                agent=run.agent.name,
                seconds=expiry.seconds,
                model_calls=done.model_calls,
                tool_calls=done.tool_calls,
                text="".join(done.texts),
            ) from failure
        task.result()

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        """Count the answer."""
        answer = await call_next(call)
        self._done(call.run).model_calls += 1
        return answer

    async def tool_call(self, call: ToolCall, call_next: ToolNext) -> Any:
        """Count the call, however it ended."""
        try:
            return await call_next(call)
        finally:
            self._done(call.run).tool_calls += 1

    def _done(self, run: Run) -> _Done:
        done: _Done = run.state.setdefault(self, _Done())
        return done

    def __repr__(self) -> str:
        return f"Deadline({self.seconds:g})"


async def _awaited(call_next: Next, run: Run) -> None:
    await call_next(run)


def _collector(run_id: str, texts: list[str]) -> Any:
    def collect(event: Event) -> None:
        if isinstance(event, TextDelta) and event.run_id == run_id and not event.internal:
            texts.append(event.text)

    return collect


async def _ended(task: asyncio.Task[Any]) -> BaseException | None:
    """Cancel a task, wait until nothing of it is left, and return what it raised on its way out."""
    task.cancel()
    await wait_for_end(task)
    return None if task.cancelled() else task.exception()
