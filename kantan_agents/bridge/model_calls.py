"""A model call at its innermost: the model itself is asked, and the observers are told."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from typing import Any

from agents import Model, ModelResponse, Usage

from kantan_agents.bridge.asking import answer_in_form, stream_in_form, with_final_tool
from kantan_agents.bridge.model_answers import FAILURES, answer_of, check_answered, usage_numbers
from kantan_agents.bridge.rewritten_stream import rewritten
from kantan_agents.bridge.stand_in import real
from kantan_agents.errors import MiddlewareResultError
from kantan_agents.events import ModelCallFinished, ModelCallStarted, TextDelta
from kantan_agents.events.emitter import Stopwatch, outcome_of
from kantan_agents.interception import ModelCall, note_open_call
from kantan_agents.models import resolve_model
from kantan_agents.protocol import is_provider
from kantan_agents.structured.requests.request import Request

_COUNT = object()


def checked(answer: Any) -> ModelResponse:
    """Return what a middleware made of a model call.

    Raises:
        MiddlewareResultError: E80, it is no ``ModelResponse``.
    """
    if isinstance(answer, ModelResponse):
        return answer
    raise refused_answer(f"model_call must return the SDK's ModelResponse, not {answer!r}")


def refused_answer(reason: str) -> MiddlewareResultError:
    """Return the error for what a middleware must not do with a model call."""
    return MiddlewareResultError(middleware="around a model call", reason=reason)


class Told:
    """Tells of one model call: that it began, and once that it ended."""

    def __init__(self, call: ModelCall, model: str | None) -> None:
        count = call.run.state[_COUNT] = call.run.state.get(_COUNT, 0) + 1
        self._names: dict[str, Any] = {
            "agent": call.agent,
            "internal": call.internal,
            "call_id": f"model_{count}",
        }
        self._model = model
        self._watch = Stopwatch()
        self._events = call.run.events

    async def started(self) -> None:
        """Tell that the model is asked."""
        if self._events is not None:
            await self._events.emit(ModelCallStarted, **self._names, model=self._model)

    def delta(self, text: str) -> Awaitable[None] | None:
        """Tell that it has written something; return what is to be awaited, if anything."""
        return None if self._events is None else self._events.tell(TextDelta, text=text, **self._names)

    async def ended(self, error: BaseException | None, usage: Usage | None) -> None:
        """Tell that it has answered, or with what it failed."""
        if self._events is not None:
            await self._events.emit_end(
                ModelCallFinished,
                **self._names,
                model=self._model,
                seconds=self._watch.seconds,
                outcome=outcome_of(error),
                usage=None if usage is None else usage_numbers(usage),
                error_type=None if error is None else type(error).__name__,
                message=None if error is None else str(error),
            )


def target_of(call: ModelCall) -> Model:
    """Return the model a call goes to.

    Raises:
        ModelNotFoundError: E19, a middleware has named one that kantan-llm does not know.
        MiddlewareResultError: E80, a middleware has put something else there.
    """
    model: Any = call.model
    if isinstance(model, str) or is_provider(model):
        model = resolve_model(model).model
    model = real(model)  # of another agent, for example
    if not isinstance(model, Model):
        raise refused_answer(f"call.model must be an SDK Model, a Provider or a name, not {call.model!r}")
    return model


def name_of(model: Model) -> str | None:
    """Return the name of a model, None if it has none."""
    for attribute in ("name", "model"):
        name = getattr(model, attribute, None)
        if isinstance(name, str):
            return name
    return None


def _is_delta(kind: Any) -> bool:
    return isinstance(kind, str) and kind.endswith(".delta")


def _request(call: ModelCall) -> Request:
    return Request(call.instructions, call.input, call.settings, call.tools, call.options)


def _fetch(call: ModelCall) -> Any:
    # A middleware may have asked for something else than the SDK did.
    fetch = call.structured
    return fetch if fetch is not None and call.options.get("output_schema") is fetch.schema else None


async def ask(call: ModelCall) -> ModelResponse:
    """Have the model answer in one piece."""
    note_open_call(call.run)
    model, fetch = target_of(call), _fetch(call)
    if fetch is None:
        return await _ask_once(call, model, _request(call))
    return await answer_in_form(model, _request(call), fetch, lambda asked: _ask_once(call, model, asked))


async def _ask_once(call: ModelCall, model: Model, request: Request) -> ModelResponse:
    told = Told(call, name_of(model))
    error: BaseException | None = None
    answer: ModelResponse | None = None
    try:
        await told.started()
        answer = await request.answer(model)
    except BaseException as raised:
        error = raised
        raise
    finally:
        await told.ended(error, answer.usage if answer is not None else None)
    return answer


def stream(call: ModelCall, *, passes_deltas: bool) -> AsyncGenerator[Any, None]:
    """Have the model stream its answer; yields the SDK's stream events.

    Args:
        call: The call.
        passes_deltas: Whether each delta is yielded. Where nobody reads them the first is enough: by it the
            SDK knows that the answer has begun, and does not ask again should it break off.
    """
    model, fetch = target_of(call), _fetch(call)
    once = _OneStream(call, model, passes_deltas).events
    if fetch is None:
        return once(_request(call), None)
    return stream_in_form(model, _request(call), fetch, once)


class _OneStream:
    """Requests of one call, each streamed and told of."""

    def __init__(self, call: ModelCall, model: Model, passes_deltas: bool) -> None:
        self._call = call
        self._model = model
        self._passes_deltas = passes_deltas

    async def events(self, request: Request, final_tool: str | None) -> AsyncGenerator[Any, None]:
        """Yield the SDK's stream events of one request."""
        call = self._call
        note_open_call(call.run)
        told = Told(call, name_of(self._model))
        error: BaseException | None = None
        usage: Usage | None = None
        last: Any = None
        has_begun = False
        events: Any = with_final_tool(request.stream(self._model), final_tool)
        if call.rewriters:
            events = rewritten(events, call.rewriters)
        try:
            await told.started()
            async with aclosing(events):
                async for event in events:
                    kind = getattr(event, "type", None)
                    if kind == "response.output_text.delta":
                        call.has_streamed = True
                        slow_readers = told.delta(event.delta)
                        if slow_readers is not None:
                            await slow_readers
                    elif kind == "response.completed":
                        last = event
                        usage = answer_of(event.response).usage
                    elif kind in FAILURES:
                        # Not passed on: the SDK would raise for it and leave this generator as it is. Nothing
                        # follows, though the connection may stay open.
                        last = event
                        break
                    if self._passes_deltas or not has_begun or not _is_delta(kind):
                        has_begun = has_begun or _is_delta(kind)
                        yield event
            check_answered(last)
        except BaseException as raised:
            error = raised
            raise
        finally:
            await told.ended(error, usage)
