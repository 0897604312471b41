"""A fake model, tools and a client for the three frameworks on the OpenAI Agents SDK."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any

import agents
from agents import FunctionTool, ItemHelpers, Model, ModelResponse, Usage, generation_span
from openai import AsyncOpenAI
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
)
from pydantic import BaseModel

from benchmarks.peers.frameworks import facts

RunOnce = Callable[[], Coroutine[Any, Any, object]]
Wait = Callable[[], Awaitable[None]]


class Report(BaseModel):
    """The answer of ``structured``."""

    city: str
    degrees: float
    sunny: bool


REPORT = Report(city=facts.CITY, degrees=facts.DEGREES, sunny=facts.SUNNY)


class FakeModel(Model):
    """Answers at once, after checking its input.

    Args:
        text: The answer.
        call: The tool to call first, if any: its name and its arguments as JSON.
        instructions: The expected instructions.
        tools: The expected number of tools.
        handoffs: The expected number of hand-offs.
        wait: Awaited before each answer.
        traces: Whether it leaves a span with input, output and usage, as the SDK's own models do.
    """

    def __init__(
        self,
        text: str = facts.ANSWER,
        *,
        call: tuple[str, str] | None = None,
        instructions: str = facts.INSTRUCTIONS,
        tools: int = 0,
        handoffs: int = 0,
        wait: Wait = facts.do_not_wait,
        traces: bool = False,
    ) -> None:
        self._text = text
        self._call = call
        self._instructions = instructions
        self._shown = (tools, handoffs)
        self._wait = wait
        self._traces = traces

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,
        model_settings: Any,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        *_args: Any,
        **_kwargs: Any,
    ) -> ModelResponse:
        """Answer.

        Raises:
            ValueError: The input differs from the expected one.
        """
        self._check(system_instructions, tools, handoffs)
        await self._wait()
        item: Any
        if self._call is not None and len(input) == 1:
            name, arguments = self._call
            item = ResponseFunctionToolCall(
                type="function_call", call_id=facts.CALL_ID, name=name, arguments=arguments
            )
        else:
            if self._call is not None:
                facts.expect(input[-1]["output"], facts.TOOL_RESULT)
            item = _message(self._text)
        if self._traces:
            messages = [
                {"role": "system", "content": system_instructions},
                *ItemHelpers.input_to_new_input_list(input),
            ]
            usage = {"input_tokens": 74, "output_tokens": 9}
            with generation_span(messages, [item.model_dump()], facts.MODEL, usage=usage):
                pass
        return ModelResponse(output=[item], usage=Usage(), response_id=None)

    def stream_response(self, *_args: Any, **_kwargs: Any) -> AsyncIterator[Any]:
        """Raise: ``StreamingModel`` is for that."""
        raise RuntimeError("this model does not stream")

    def _check(self, instructions: str | None, tools: list[Any], handoffs: list[Any]) -> None:
        facts.expect(instructions, self._instructions)
        facts.expect((len(tools), len(handoffs)), self._shown)


class StreamingModel(FakeModel):
    """Streams ``facts.DELTAS`` with events that are created beforehand."""

    def __init__(self) -> None:
        super().__init__()
        self._deltas = [
            ResponseTextDeltaEvent(
                type="response.output_text.delta",
                item_id="m",
                output_index=0,
                content_index=0,
                delta=delta,
                logprobs=[],
                sequence_number=number,
            )
            for number, delta in enumerate(facts.DELTAS)
        ]
        whole = Response(
            id="r",
            created_at=0,
            model=facts.MODEL,
            object="response",
            output=[_message(facts.STREAMED)],
            tool_choice="auto",
            tools=[],
            parallel_tool_calls=False,
        )
        self._end = ResponseCompletedEvent(
            type="response.completed", response=whole, sequence_number=len(self._deltas)
        )

    async def stream_response(
        self,
        system_instructions: str | None,
        input: Any,
        model_settings: Any,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        *_args: Any,
        **_kwargs: Any,
    ) -> AsyncIterator[Any]:
        """Yield the deltas, then the end."""
        self._check(system_instructions, tools, handoffs)
        for event in self._deltas:
            yield event
        yield self._end


def _message(text: str) -> ResponseOutputMessage:
    content = ResponseOutputText(type="output_text", text=text, annotations=[])
    return ResponseOutputMessage(
        id="m", type="message", role="assistant", status="completed", content=[content]
    )


def calling_tool() -> FakeModel:
    """Return a model that calls its only tool, then answers."""
    return FakeModel(call=(facts.TOOL_NAME, facts.TOOL_ARGUMENTS), tools=1)


def handing_over() -> FakeModel:
    """Return a model that hands over to the last target."""
    name = f"transfer_to_{facts.target_name(facts.TARGETS - 1)}"
    return FakeModel(call=(name, "{}"), handoffs=facts.TARGETS)


def make_tools(count: int) -> list[FunctionTool]:
    """Return async function tools, which need no threads."""

    async def weather(city: str) -> str:
        """Tell the weather.

        Args:
            city: Where.
        """
        return f"sunny in {city}"

    return [agents.function_tool(weather, name_override=facts.tool_name(number)) for number in range(count)]


def client() -> AsyncOpenAI:
    """Return a real client for the server on loopback.

    Raises:
        KeyError: The environment variable with the server's address is missing.
    """
    return AsyncOpenAI(base_url=os.environ[facts.BASE_URL_VARIABLE], api_key=facts.KEY)
