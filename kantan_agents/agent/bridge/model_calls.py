"""The innermost part of a model call: sends the request."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from functools import partial
from typing import Any

import anyio
from agents import Model, ModelResponse

from kantan_agents.agent.bridge.call_events import TEXT_DELTA, CallEvents
from kantan_agents.agent.bridge.model_answers import (
    FAILURES,
    broken_off,
    check_answered,
)
from kantan_agents.agent.bridge.recorded_answers import model_response, stream_events
from kantan_agents.agent.bridge.rewritten_stream import rewritten
from kantan_agents.agent.bridge.structured_requests import (
    closable,
    open_stream,
    request_output,
    stream_output,
    with_final_tool,
)
from kantan_agents.core.interception import ModelCall, redacted_error, track_call
from kantan_agents.errors import MiddlewareResultError
from kantan_agents.models.client_retries import makes_all_retries
from kantan_agents.models.model_wrapper import unwrapped
from kantan_agents.models.origin import origin_of
from kantan_agents.models.protocol import is_provider
from kantan_agents.models.resolve import resolve_model
from kantan_agents.models.sent_once import answer_sent_once, stream_sent_once
from kantan_agents.models.structured.requests.request import Request
from kantan_agents.traces.capture import ModelAnswer

_NOT_BEGUN = ("response.created", "response.in_progress", "response.queued")


def checked_response(answer: Any) -> ModelResponse:
    """Return a middleware's answer; E80 if it is not a ``ModelResponse``."""
    if isinstance(answer, ModelResponse):
        return answer
    raise middleware_error(f"model_call must return the SDK's ModelResponse, not {answer!r}")


def middleware_error(reason: str) -> MiddlewareResultError:
    """Return the error for middleware that breaks its contract."""
    return MiddlewareResultError(middleware="around a model call", reason=reason)


def target_of(call: ModelCall) -> Model:
    """Return the model of a call; raises E19 or E80."""
    model: Any = call.model
    if isinstance(model, str) or (not isinstance(model, Model) and is_provider(model)):
        model = resolve_model(model).model
    model = unwrapped(model)  # a middleware may have set another agent's model
    if not isinstance(model, Model):
        raise middleware_error(f"call.model must be an SDK Model, a Provider or a name, not {call.model!r}")
    return model


def _request(call: ModelCall) -> Request:
    return Request(call.instructions, call.input, call.settings, call.tools, call.options)


def _fetch(call: ModelCall) -> Any:
    # A middleware may have replaced the output schema.
    fetch = call._structured
    if call._stored is not None:
        return None  # it answers the whole call, whichever form led to it
    if fetch is None or call.options.get("output_schema") is not fetch.schema:
        return None
    memory = None if call.run._tape is None else call.run._tape.form_memory(call)
    if memory is not None:
        fetch.memory = memory
    return fetch


def _opened(call: ModelCall, model: Model, request: Request) -> Any:
    if call.run._tape is not None:
        return call.run._tape.stream(call, model, request)
    if call.run._journal is not None:
        return call.run._journal.stream(call, model, request, partial(_opened_now, call, model, request))
    return _opened_now(call, model, request)


def _opened_now(call: ModelCall, model: Model, request: Request) -> Any:
    if call._stored is not None:
        events: Any = stream_events(call._stored, origin_of(model).model or "")
    else:
        events = open_stream(model, request)
        if makes_all_retries(request.settings):
            events = stream_sent_once(model, events)
    return events if call._race is None else _raced_stream(call, closable(events))


async def _raced_stream(call: ModelCall, events: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
    held: list[Any] | None = []
    async with aclosing(events):
        async for event in events:
            kind = getattr(event, "type", None)
            if held is not None and kind in _NOT_BEGUN:
                held.append(event)
                continue
            if held is not None and kind not in FAILURES:
                if not call._race.claim(None):
                    await anyio.sleep_forever()  # until its cancellation arrives
                for earlier in held:
                    yield earlier
                held = None
            yield event


async def call_model(call: ModelCall) -> ModelResponse:
    """Call the model without streaming."""
    limit = call._limit
    if limit is not None:
        call._limit = None
        try:
            return checked_response(await limit.model_call(call, call_model))
        finally:
            call._limit = limit
    track_call(call.run)
    model, fetch = target_of(call), _fetch(call)
    if fetch is None:
        return await _call_once(call, model, _request(call))
    return await request_output(
        model, _request(call), fetch, lambda request: _call_once(call, model, request)
    )


async def _call_once(call: ModelCall, model: Model, request: Request) -> ModelResponse:
    call_events = CallEvents(call, model, request)
    error: BaseException | None = None
    answer: ModelResponse | None = None
    try:
        await call_events.started()
        answer = await _asked(call, model, request)
    except BaseException as raised:
        error = redacted_error(call.run, raised)
        if error is raised:
            raise
    finally:
        await call_events.ended(error, answer)
    if error is not None:
        raise error  # in the `except` block, the original would become its context
    assert answer is not None
    return answer


def _asked(call: ModelCall, model: Model, request: Request) -> Awaitable[ModelResponse]:
    tape = call.run._tape
    if tape is not None:
        played: Awaitable[ModelResponse] = tape.answer(call, model, request)
        return played
    if call.run._journal is not None:
        kept: Awaitable[ModelResponse] = call.run._journal.answer(
            call, model, request, partial(_asked_now, call, model, request)
        )
        return kept
    return _asked_now(call, model, request)


def _asked_now(call: ModelCall, model: Model, request: Request) -> Awaitable[ModelResponse]:
    if call._stored is not None:
        asked: Awaitable[ModelResponse] = _stored_answer(call._stored, model)
    else:
        asked = request.answer(model)
        if makes_all_retries(request.settings):
            asked = answer_sent_once(model, asked)
    return asked if call._race is None else _raced(call, asked)


async def _stored_answer(stored: ModelAnswer, model: Model) -> ModelResponse:
    return model_response(stored, origin_of(model).model or "")


async def _raced(call: ModelCall, asked: Awaitable[ModelResponse]) -> ModelResponse:
    answer = await asked
    if not call._race.claim(answer):
        await anyio.sleep_forever()  # until its cancellation arrives
    return answer


def stream_model(call: ModelCall, *, passes_deltas: bool) -> AsyncGenerator[Any, None]:
    """Yield the SDK's stream events.

    Without ``passes_deltas``, only the first delta: it stops the SDK from retrying a broken stream.
    """
    model, fetch = target_of(call), _fetch(call)
    once = _CallStream(call, model, passes_deltas).events
    if fetch is None:
        return once(_request(call), None)
    return stream_output(model, _request(call), fetch, once)


class _CallStream:
    def __init__(self, call: ModelCall, model: Model, passes_deltas: bool) -> None:
        self._call = call
        self._model = model
        self._passes_deltas = passes_deltas
        self._has_begun = False

    def _passes(self, kind: Any) -> bool:
        if not isinstance(kind, str) or not kind.endswith(".delta"):
            return True
        if self._has_begun:
            return self._passes_deltas
        self._has_begun = self._call.has_begun = True
        return True

    async def events(self, request: Request, final_tool: str | None) -> AsyncGenerator[Any, None]:
        call = self._call
        track_call(call.run)
        call_events = CallEvents(call, self._model, request)
        error: BaseException | None = None
        answer: ModelResponse | None = None
        last: Any = None
        self._has_begun = False
        streamed: Any = with_final_tool(_opened(call, self._model, request), final_tool)
        events: Any = rewritten(streamed, call.rewriters) if call.rewriters else streamed
        try:
            await call_events.started()
            async with aclosing(call_events.with_raw_events(events)) as passed:
                async for event in passed:
                    kind = getattr(event, "type", None)
                    slow_readers = call_events.piece(kind, event)
                    if slow_readers is not None:
                        await slow_readers
                    if kind == TEXT_DELTA:
                        call.has_streamed = True
                    elif kind == "response.completed":
                        last = event
                        answer = call_events.answer_of(event.response)
                    elif kind in FAILURES:
                        # Not yielded: the SDK would raise and leave this generator open. The connection may
                        # stay open.
                        last = event
                        break
                    if self._passes(kind):
                        yield event
            call.broken_off = broken_off(last)
            check_answered(last)
        except BaseException as raised:
            error = redacted_error(call.run, raised)
            if error is raised:
                raise
        finally:
            await call_events.ended(error, answer, has_begun=self._has_begun)
        if error is not None:
            raise error  # in the `except` block, the original would become its context
