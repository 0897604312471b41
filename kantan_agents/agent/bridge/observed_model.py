"""Sends a run's model calls through its middleware and emits their events.

The SDK reads a stream from a generator, but middleware awaits an answer, so for a stream the middleware runs
in a separate task and sends events over a channel.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import anyio
from agents import ModelResponse
from openai.types.responses import Response, ResponseCompletedEvent, ResponseOutputItemDoneEvent

from kantan_agents.agent.bridge.call_events import CallEvents
from kantan_agents.agent.bridge.model_answers import (
    answer_of,
    completed_event,
    text_of,
    with_other_usage,
    with_output,
)
from kantan_agents.agent.bridge.model_calls import (
    call_model,
    checked_response,
    middleware_error,
    stream_model,
)
from kantan_agents.agent.bridge.streamed_run import are_deltas_discarded
from kantan_agents.agent.bridge.structured_requests import request_answer, stream_answer
from kantan_agents.core.interception import ModelCall, active_agent, around_model_call
from kantan_agents.core.pipeline import Run, current_run
from kantan_agents.models.ask_model import ask_model
from kantan_agents.models.model_wrapper import ModelWrapper
from kantan_agents.models.structured.requests.fetch import Fetch
from kantan_agents.models.structured.requests.request import Request
from kantan_agents.support.waiting import wait_for_end


class ObservedModel(ModelWrapper):
    """Wraps models in observed runs; ``agent`` names calls outside a turn."""

    def __init__(self, agent: Any) -> None:
        self._agent = agent

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Call the model through the middleware."""
        run = current_run.get()
        if run is None or not run.is_only_captured:
            return await self.answer(Request.of(args, kwargs))
        # Most runs take this path, so they wait only for the capture.
        request = Request.as_given(args, kwargs)
        call = run._capture.model_call(active_agent.get() or self._agent.name, self.inner, request)
        try:
            answer = await ask_model(self.inner, args, kwargs)
        except BaseException as error:
            call.failed(error)
            raise
        call.answered(answer)
        return answer

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Stream the model's answer through the middleware."""
        return self.events(Request.of(args, kwargs))

    async def answer(self, request: Request, fetch: Fetch | None = None) -> ModelResponse:
        """Return the answer to a request; ``fetch`` has earlier attempts."""
        run = current_run.get()
        if run is None or not run.is_watched:
            return await request_answer(self.inner, request, fetch)
        call = self._call(run, request, fetch)
        if not run.model_calls:
            return await call_model(call)
        answer = checked_response(await around_model_call(run.model_calls, call, call_model))
        return with_other_usage(call, answer)

    def events(self, request: Request, fetch: Fetch | None = None) -> AsyncGenerator[Any, None]:
        """Return the stream of events for ``answer``."""
        run = current_run.get()
        if run is None or not run.is_watched:
            return stream_answer(self.inner, request, fetch)
        call = self._call(run, request, fetch)
        call.is_streamed = True
        passes_deltas = not are_deltas_discarded(run)
        if run.model_calls:
            return _StreamWithMiddleware(run, call, passes_deltas).events()
        return stream_model(call, passes_deltas=passes_deltas)

    def _call(self, run: Run, request: Request, fetch: Fetch | None) -> ModelCall:
        return ModelCall(
            run,
            active_agent.get() or self._agent.name,
            self.inner,
            request.instructions,
            request.input,
            request.settings,
            request.tools,
            request.options,
            structured=fetch,
        )


class _StreamWithMiddleware:
    def __init__(self, run: Run, call: ModelCall, passes_deltas: bool) -> None:
        self._run = run
        self._call = call
        self._passes_deltas = passes_deltas
        # A buffer of one event: a slow consumer slows down the model.
        self._send, self._receive = anyio.create_memory_object_stream[Any](1)
        self._last: tuple[ModelResponse, Response] | None = None

    async def events(self) -> AsyncGenerator[Any, None]:
        """Yield the SDK's stream events; the last one holds the middleware's answer."""
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
        final = self._last[1] if self._last is not None and is_its_own else None
        yield completed_event(with_other_usage(self._call, answer), final)

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
            self._call._was_sent = self._call._was_sent or call._was_sent
        if final is None:
            raise middleware_error("the model's stream ended without an answer")
        answer = answer_of(final, is_request=call._stored is None)
        self._last = (answer, final)
        return answer
