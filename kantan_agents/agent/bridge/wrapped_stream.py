"""A streamed model call with middleware around it.

The SDK reads events from a generator, while a middleware awaits an answer. So the middleware runs in a task
of its own and sends the events of the model over a channel.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import anyio
from agents import ModelResponse
from openai.types.responses import Response, ResponseCompletedEvent, ResponseOutputItemDoneEvent

from kantan_agents.agent.bridge.model_answers import answer_of, completed_event, text_of, with_output
from kantan_agents.agent.bridge.model_calls import (
    CallEvents,
    call_model,
    checked_response,
    middleware_error,
    stream_model,
)
from kantan_agents.core.interception import ModelCall, around_model_call
from kantan_agents.core.pipeline import Run
from kantan_agents.support.waiting import wait_for_end


class WrappedStream:
    """One model call that is streamed through the middleware of its run."""

    def __init__(self, run: Run, call: ModelCall, passes_deltas: bool) -> None:
        self._run = run
        self._call = call
        self._passes_deltas = passes_deltas
        # A buffer of one event: a slow consumer slows down the model.
        self._send, self._receive = anyio.create_memory_object_stream[Any](1)
        self._last: tuple[ModelResponse, Response] | None = None

    async def events(self) -> AsyncGenerator[Any, None]:
        """Yield the SDK's stream events; the last one holds the answer that the middleware has returned."""
        task = asyncio.create_task(self._work())
        try:
            async for event in self._receive:
                yield event
            await asyncio.wait([task])
            answer = task.result()
        finally:
            self._receive.close()
            if not task.done():
                task.cancel()
                await wait_for_end(task)
            if not task.cancelled():
                task.exception()  # marks it as retrieved: it was raised above, or the reader has left
        is_its_own = self._last is not None and self._last[0] is answer
        if not is_its_own and not self._call.has_streamed and text_of(answer):
            slow_readers = CallEvents(self._call, None).delta(text_of(answer))
            if slow_readers is not None:
                await slow_readers
        yield completed_event(answer, self._last[1] if self._last is not None and is_its_own else None)

    async def _work(self) -> ModelResponse:
        async with self._send:
            return checked_response(
                await around_model_call(self._run.model_calls, self._call, self._call_model)
            )

    async def _call_model(self, call: ModelCall) -> ModelResponse:
        if call.internal or not call.is_streamed:
            return await call_model(call)
        final: Response | None = None
        items: list[Any] = []
        try:
            async with aclosing(stream_model(call, passes_deltas=self._passes_deltas)) as events:
                async for event in events:
                    if isinstance(event, ResponseCompletedEvent):
                        final = with_output(event.response, items)
                        continue  # held back: the middleware may return another answer
                    if isinstance(event, ResponseOutputItemDoneEvent):
                        items.append(event.item)
                    await self._send.send(event)
        finally:
            self._call.has_begun = self._call.has_begun or call.has_begun
            self._call.has_streamed = self._call.has_streamed or call.has_streamed
            self._call.broken_off = call.broken_off
            self._call.was_sent = self._call.was_sent or call.was_sent
        if final is None:
            raise middleware_error("the model's stream ended without an answer")
        answer = answer_of(final, is_request=call.stored is None)
        self._last = (answer, final)
        return answer
