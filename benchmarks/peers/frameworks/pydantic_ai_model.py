"""A fake model for pydantic-ai that answers at once, in place of the framework's model classes."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timezone
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.profiles.openai import openai_model_profile
from pydantic_ai.settings import ModelSettings

from benchmarks.peers.frameworks import facts

PROVIDER = "fake"
Wait = Callable[[], Awaitable[None]]


class FakeModel(Model[None]):
    """Answers at once, after checking its input.

    As in all of the framework's model classes, each request begins with ``prepare_request``, here with the
    profile of an OpenAI model: pydantic-ai transforms the schemas of the tools there, in each request.

    Args:
        text: The answer.
        call: The tool to call first, if any: its name and its arguments as JSON.
        instructions: The expected instructions.
        tools: The expected number of tools.
        handoffs: The expected number of hand-offs, which are output functions.
        wait: Awaited before each answer.
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
    ) -> None:
        super().__init__(profile=openai_model_profile(facts.MODEL))
        self._text = text
        self._call = call
        self._instructions = instructions
        self._shown = (tools, handoffs)
        self._wait = wait

    @property
    def model_name(self) -> str:
        """The name of the model."""
        return facts.MODEL

    @property
    def system(self) -> str:
        """The name of the provider."""
        return PROVIDER

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Answer.

        Raises:
            ValueError: The input differs from the expected one.
        """
        self._prepare(messages, model_settings, model_request_parameters)
        await self._wait()
        part: ModelResponsePart = TextPart(self._text)
        if self._call is not None and len(messages) == 1:
            part = ToolCallPart(*self._call, tool_call_id=facts.CALL_ID)
        return ModelResponse([part], model_name=facts.MODEL, provider_name=PROVIDER)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Answer in the deltas of all frameworks."""
        parameters = self._prepare(messages, model_settings, model_request_parameters)
        await self._wait()
        yield FakeStream(parameters)

    def _prepare(
        self, messages: list[ModelMessage], settings: ModelSettings | None, asked: ModelRequestParameters
    ) -> ModelRequestParameters:
        _, parameters = self.prepare_request(settings, asked)
        last = messages[-1]
        facts.expect(last.instructions if isinstance(last, ModelRequest) else None, self._instructions)
        facts.expect((len(parameters.function_tools), len(parameters.output_tools)), self._shown)
        return parameters


@dataclasses.dataclass
class FakeStream(StreamedResponse):
    """The answer, delta by delta."""

    _timestamp: datetime = dataclasses.field(default_factory=lambda: datetime.now(timezone.utc), init=False)

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        for delta in facts.DELTAS:
            for event in self._parts_manager.handle_text_delta(vendor_part_id="m", content=delta):
                yield event

    async def close_stream(self) -> None:
        """Close nothing: there is no connection."""

    @property
    def model_name(self) -> str:
        """The name of the model."""
        return facts.MODEL

    @property
    def provider_name(self) -> str:
        """The name of the provider."""
        return PROVIDER

    @property
    def provider_url(self) -> None:
        """The fake has no address."""
        return

    @property
    def timestamp(self) -> datetime:
        """Time at which the answer began."""
        return self._timestamp
