"""A scripted model for SDKs without ``agents.testing``."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agents import Model, ModelResponse, Usage
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseCreatedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
)

from kantan_agents.models.protocol.responses import response_usage


class ModelScriptError(Exception):
    """A script is invalid, too short, or was not played to its end."""


class UnexpectedModelCall(ModelScriptError):  # noqa: N818 - the SDK's name
    """The model was called after its last step.

    Attributes:
        call: The call without a step.
        call_index: Its index, from 0.
    """

    def __init__(self, message: str, *, call: RecordedCall, call_index: int) -> None:
        super().__init__(message)
        self.call = call
        self.call_index = call_index


class UnconsumedModelSteps(ModelScriptError):  # noqa: N818 - the SDK's name
    """Some steps were not played.

    Attributes:
        remaining_steps: Their number.
    """

    def __init__(self, message: str, *, remaining_steps: int) -> None:
        super().__init__(message)
        self.remaining_steps = remaining_steps


@dataclass(frozen=True)
class RecordedCall:
    """One model call of the SDK, with its arguments at the time of the call."""

    system_instructions: str | None
    input: Any
    model_settings: Any
    tools: list[Any]
    output_schema: Any
    handoffs: list[Any]
    tracing: Any
    previous_response_id: str | None
    conversation_id: str | None
    prompt: Any
    streamed: bool


@dataclass
class ModelStep:
    """One step of the script: output items, an error, a function that returns the answer, or events."""

    output: Sequence[Any] = ()
    usage: Usage = field(default_factory=Usage)
    response_id: str | None = "scripted-response"
    request_id: str | None = None
    error: Exception | None = None
    responder: Responder | None = None
    stream_events: Any = None

    @classmethod
    def raise_error(cls, error: Exception) -> ModelStep:
        """Return a step that raises ``error``."""
        return cls(error=error)

    @classmethod
    def respond(cls, responder: Responder) -> ModelStep:
        """Return a step that a sync or async function computes from the call."""
        return cls(responder=responder)

    @classmethod
    def stream(cls, events: StreamEvents, *, output: Sequence[Any] = ()) -> ModelStep:
        """Return a step with exact stream events, or a function that yields them."""
        return cls(output=output, stream_events=events)


StepLike: TypeAlias = "ModelStep | ModelResponse | Mapping[str, Any] | Sequence[Any] | Exception"
StreamEvents: TypeAlias = "Sequence[Any] | Callable[[RecordedCall], AsyncIterator[Any]]"
Responder: TypeAlias = "Callable[[RecordedCall], StepLike | Awaitable[StepLike]]"


class ScriptedModel(Model):
    """An SDK model that plays one step of a script for each call, and records the calls.

    Args:
        steps: The steps in order. A step is a list of output items (see ``assistant_message``,
            ``function_call``), a ``ModelStep`` or its fields as a dict, a ``ModelResponse``, or an exception
            to raise.
    """

    def __init__(self, steps: Iterable[StepLike] = ()) -> None:
        self._steps = [_as_step(step) for step in steps]
        self._calls: list[RecordedCall] = []

    @property
    def calls(self) -> tuple[RecordedCall, ...]:
        """All calls so far, in order."""
        return tuple(self._calls)

    @property
    def first_call(self) -> RecordedCall | None:
        """The first call, or None."""
        return self._calls[0] if self._calls else None

    @property
    def last_call(self) -> RecordedCall | None:
        """The last call, or None."""
        return self._calls[-1] if self._calls else None

    @property
    def remaining_steps(self) -> int:
        """The number of steps that have not been played yet."""
        return len(self._steps)

    def enqueue(self, step: StepLike) -> None:
        """Add a step at the end."""
        self._steps.append(_as_step(step))

    def extend(self, steps: Iterable[StepLike]) -> None:
        """Add steps at the end."""
        self._steps.extend(_as_step(step) for step in steps)

    def assert_complete(self) -> None:
        """Raise ``UnconsumedModelSteps`` unless every step was played."""
        if self._steps:
            count = len(self._steps)
            raise UnconsumedModelSteps(f"{count} scripted steps were left", remaining_steps=count)

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Play the next step."""
        return _response(await self._play(_record(args, kwargs, streamed=False)))

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Play the next step as stream events: created, text deltas, completed."""
        call = _record(args, kwargs, streamed=True)
        step = await self._play(call)
        if step.stream_events is not None:
            async for event in _exact(step.stream_events, call):
                yield event
            return
        played = _response(step)
        response = _wire_response(played)
        created = response.model_copy(update={"status": "in_progress", "output": []})
        yield ResponseCreatedEvent(type="response.created", response=created, sequence_number=0)
        number = 1
        for index, item in enumerate(played.output):
            for part in getattr(item, "content", None) or ():
                yield ResponseTextDeltaEvent(
                    type="response.output_text.delta",
                    item_id=item.id or "scripted-message",
                    output_index=index,
                    content_index=0,
                    delta=part.text,
                    logprobs=[],
                    sequence_number=number,
                )
                number += 1
        yield ResponseCompletedEvent(type="response.completed", response=response, sequence_number=number)

    async def _play(self, call: RecordedCall) -> ModelStep:
        self._calls.append(call)
        if not self._steps:
            index = len(self._calls) - 1
            raise UnexpectedModelCall(
                f"model call {index + 1} has no scripted step", call=call, call_index=index
            )
        step = self._steps.pop(0)
        while step.responder is not None:
            answer = step.responder(call)
            step = _as_step(await answer if inspect.isawaitable(answer) else answer)
        if step.error is not None:
            raise step.error
        return step


def _response(step: ModelStep) -> ModelResponse:
    usage = step.usage if step.usage != Usage() else Usage(requests=1)
    return ModelResponse(
        output=list(step.output),
        usage=usage,
        response_id=step.response_id,
        request_id=step.request_id,
    )


async def _exact(events: Any, call: RecordedCall) -> AsyncIterator[Any]:
    if not callable(events):
        for event in events:
            yield event
        return
    async with aclosing(events(call)) as stream:
        async for event in stream:
            yield event


def assistant_message(text: str, *, item_id: str = "scripted-message") -> ResponseOutputMessage:
    """Return an output item with the model's text."""
    content = ResponseOutputText(type="output_text", text=text, annotations=[], logprobs=[])
    return ResponseOutputMessage(
        id=item_id, type="message", role="assistant", status="completed", content=[content]
    )


def function_call(
    name: str,
    arguments: str | Mapping[str, Any],
    *,
    call_id: str,
    item_id: str | None = None,
) -> ResponseFunctionToolCall:
    """Return an output item with which the model calls a tool; ``arguments`` may be raw JSON."""
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return ResponseFunctionToolCall(
        id=item_id or call_id,
        call_id=call_id,
        type="function_call",
        name=name,
        arguments=arguments,
    )


_POSITIONAL = (
    "system_instructions",
    "input",
    "model_settings",
    "tools",
    "output_schema",
    "handoffs",
    "tracing",
)


def _record(args: tuple[Any, ...], kwargs: dict[str, Any], *, streamed: bool) -> RecordedCall:
    arguments = {**dict(zip(_POSITIONAL, args, strict=False)), **kwargs}
    # The SDK changes these lists later in the run.
    if isinstance(arguments["input"], list):
        arguments["input"] = list(arguments["input"])
    arguments["tools"], arguments["handoffs"] = list(arguments["tools"]), list(arguments["handoffs"])
    return RecordedCall(**arguments, streamed=streamed)


def _as_step(step: StepLike) -> ModelStep:
    if isinstance(step, ModelStep):
        return step
    if isinstance(step, Exception):
        return ModelStep(error=step)
    if isinstance(step, ModelResponse):
        return ModelStep(step.output, step.usage, step.response_id, step.request_id)
    if isinstance(step, Mapping):
        return ModelStep(**step)
    if isinstance(step, Sequence) and not isinstance(step, (str, bytes)):
        return ModelStep(list(step))
    raise ModelScriptError(
        f"a step is a list of output items, a ModelStep, a dict of its fields, a ModelResponse or an "
        f"exception, not {step!r}"
    )


def _wire_response(played: ModelResponse) -> Response:
    return Response(
        id=played.response_id or "scripted-response",
        created_at=0,
        model="scripted-model",
        object="response",
        output=played.output,
        tool_choice="none",
        tools=[],
        parallel_tool_calls=False,
        status="completed",
        usage=response_usage(played.usage),
    )
