"""A model call at its innermost: the model itself is asked, and the observers are told."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from typing import Any

from agents import Model, ModelResponse, Usage

from kantan_agents.bridge.model_answers import FAILURES, answer_of, check_answered, usage_numbers
from kantan_agents.bridge.rewritten_stream import rewritten
from kantan_agents.errors import MiddlewareResultError
from kantan_agents.events import ModelCallFinished, ModelCallStarted, TextDelta
from kantan_agents.events.emitter import Stopwatch, outcome_of
from kantan_agents.interception import ModelCall, note_open_call
from kantan_agents.models import resolve_model

FURTHER = ("output_schema", "handoffs", "tracing")
"""What the SDK's ``stream_response`` takes by position, after what a ``ModelCall`` names itself."""

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
    if isinstance(model, str):
        model = resolve_model(model).model
    if not isinstance(model, Model):
        raise refused_answer(f"call.model must be an SDK Model or a name, not {call.model!r}")
    return model


def name_of(model: Model) -> str | None:
    """Return the name of a model, None if it has none."""
    for attribute in ("name", "model"):
        name = getattr(model, attribute, None)
        if isinstance(name, str):
            return name
    return None


def closable(events: Any) -> Any:
    """Return a model's stream as something that can be closed; only generators can be by themselves."""
    return events if hasattr(events, "aclose") else _passed_on(events)


async def _passed_on(events: Any) -> AsyncGenerator[Any, None]:
    async for event in events:
        yield event


def _is_delta(kind: Any) -> bool:
    return isinstance(kind, str) and kind.endswith(".delta")


async def ask(call: ModelCall) -> ModelResponse:
    """Have the model answer in one piece."""
    note_open_call(call.run)
    model = target_of(call)
    told = Told(call, name_of(model))
    error: BaseException | None = None
    answer: ModelResponse | None = None
    try:
        await told.started()
        answer = await model.get_response(
            system_instructions=call.instructions,
            input=call.input,
            model_settings=call.settings,
            tools=call.tools,
            **call.options,
        )
    except BaseException as raised:
        error = raised
        raise
    finally:
        await told.ended(error, answer.usage if answer is not None else None)
    return answer


async def stream(call: ModelCall, *, passes_deltas: bool) -> AsyncGenerator[Any, None]:
    """Have the model stream its answer; yields the SDK's stream events.

    Args:
        call: The call.
        passes_deltas: Whether each delta is yielded. Where nobody reads them the first is enough: by it the
            SDK knows that the answer has begun, and does not ask again should it break off.
    """
    note_open_call(call.run)
    model = target_of(call)
    told = Told(call, name_of(model))
    error: BaseException | None = None
    usage: Usage | None = None
    last: Any = None
    has_begun = False
    options = dict(call.options)
    further = [options.pop(name) for name in FURTHER]
    events: Any = closable(
        model.stream_response(call.instructions, call.input, call.settings, call.tools, *further, **options)
    )
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
                if passes_deltas or not has_begun or not _is_delta(kind):
                    has_begun = has_begun or _is_delta(kind)
                    yield event
        check_answered(last)
    except BaseException as raised:
        error = raised
        raise
    finally:
        await told.ended(error, usage)
