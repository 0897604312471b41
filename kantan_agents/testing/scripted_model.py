"""``ScriptedModel``: with the scripts of ``OfflineServer``."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from typing import Any, cast

import anyio
import pydantic
from agents import ModelResponse
from openai.types.responses import Response, ResponseStreamEvent

from kantan_agents.agent.bridge.model_answers import answer_of
from kantan_agents.testing.faults import error_of, fails
from kantan_agents.testing.replies import Reply, ReplyFunction, is_step_fields, read_reply
from kantan_agents.testing.script import Script, checked_script, is_native, returned_by
from kantan_agents.testing.steps import ModelStep, RecordedCall, StepModel
from kantan_agents.testing.wire import response_body, response_events

_NAME = "scripted-model"


class ScriptedModel(StepModel):
    """An SDK model that answers from a script, and records its calls.

        Agent("geo", "Answer.", model=ScriptedModel(["Paris."]))

    It plays the scripts of ``OfflineServer`` with the same result, except without HTTP: an exception in the
    script is raised unchanged; a temporary error such as status 429 fails one model call, and no client
    repeats it; a ``body`` with status 200 is an ``InvalidScriptError``; several messages and reasoning items
    are played, which Chat Completions cannot return. A reply without ``usage`` has 10 input and 5 output
    tokens, but a list of SDK items has none.

    Args:
        steps: The replies in order, one for each model call, or a function of the call, which receives a
            ``RecordedCall``.
        options: Options of the SDK's class, if the SDK has one.

    Raises:
        InvalidScriptError: E75, a reply is not valid. The message has its position.

    Attributes:
        calls: The model calls so far, in order.
    """

    def __init__(self, steps: Script[RecordedCall] = (), **options: Any) -> None:
        super().__init__((), **options)
        self._answer: ReplyFunction | None = None
        if callable(steps):
            self._answer = steps
        else:
            self.extend(steps)

    def enqueue(self, step: object) -> None:
        """Add a reply at the end.

        Raises:
            InvalidScriptError: E75, it is not a reply.
        """
        super().extend([_model_step(step, "step")])

    def extend(self, steps: Iterable[object]) -> None:
        """Add replies at the end.

        Raises:
            InvalidScriptError: E75, one of them is not a reply. Nothing is added.
        """
        values = list(checked_script(steps, "steps"))
        super().extend([_model_step(value, f"steps[{index}]") for index, value in enumerate(values)])

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Play the next reply."""
        self._ask()
        return await super().get_response(*args, **kwargs)

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Play the next reply as the stream events of the Responses API."""
        self._ask()
        stream: Any = super().stream_response(*args, **kwargs)
        async with aclosing(stream) as events:
            async for event in events:
                yield event

    def _ask(self) -> None:
        """Added replies come first."""
        if self._answer is not None and not self.remaining_steps:
            super().extend([_asking(self._answer)])


def _model_step(value: object, where: str) -> Any:
    """Values that the SDK can play stay unchanged."""
    reply = read_reply(value, where)
    if not isinstance(reply, Reply):
        return _asking(reply)
    if isinstance(value, (ModelStep, ModelResponse, Exception)) or is_native(value):
        return value
    if is_step_fields(value):
        return ModelStep(**cast("dict[str, Any]", value))
    if fails(reply) or reply.body is not None:
        step = ModelStep.raise_error(error_of(reply, where))
    elif reply.events is not None:
        step = ModelStep(output=reply.items, stream_events=reply.events)
    else:
        step = ModelStep.respond(lambda call: _answered(reply, streamed=call.streamed))
    return _delayed(step, reply.delay) if reply.delay else step


def _asking(function: ReplyFunction) -> ModelStep:
    async def answer(call: RecordedCall) -> Any:
        given = function(call)
        name = getattr(function, "__name__", type(function).__name__)
        return _model_step(await given if inspect.isawaitable(given) else given, returned_by(name))

    return ModelStep.respond(answer)


def _delayed(step: ModelStep, seconds: float) -> ModelStep:
    async def wait(_call: RecordedCall) -> ModelStep:
        await anyio.sleep(seconds)
        return step

    return ModelStep.respond(wait)


def _answered(reply: Reply, *, streamed: bool) -> ModelStep | ModelResponse:
    if streamed:
        events = [_EVENT.validate_python(event) for event in response_events(reply, _NAME)]
        return ModelStep(stream_events=events)
    return answer_of(Response.model_validate(response_body(reply, _NAME)))


_EVENT: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(ResponseStreamEvent)
