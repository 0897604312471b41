"""A provider as a model of the SDK."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Mapping
from contextlib import aclosing
from functools import partial
from itertools import count
from typing import Any, TypeGuard

import attrs
from agents import Handoff, Model, ModelResponse, ModelSettings, ModelTracing
from anyio import to_thread

from kantan_agents.errors import AgentPainException, InvalidOptionError
from kantan_agents.protocol.answers import sdk_items, sdk_usage, understood, understood_piece
from kantan_agents.protocol.cancelled import no_cancellation_of_its_own
from kantan_agents.protocol.context import Tools, context_of, is_large, prompt_of, refuse_kept_conversation
from kantan_agents.protocol.model_span import ModelSpan, model_span
from kantan_agents.protocol.provider import Provider, ProviderContext
from kantan_agents.protocol.streaming import EventWriter
from kantan_agents.protocol.types import ContentSegment, ProviderResponse

_numbers = count(1)
_END: Any = object()


def is_provider(value: Any) -> TypeGuard[Provider]:
    """Return whether ``value`` is a provider: an object with a ``name`` and an async ``generate``."""
    if not isinstance(value, Provider) or isinstance(value, type):
        return False
    return isinstance(value.name, str) and callable(value.generate)


@attrs.frozen
class _Asked:
    """One request of the SDK, as the provider gets it."""

    prompt: str
    context: ProviderContext

    @property
    def call_ids(self) -> set[str]:
        """Ids of the calls made so far."""
        parts = (part for message in self.context.messages for part in message.segments)
        return {part.tool_call.id for part in parts if part.tool_call is not None}


class ProviderModel(Model):
    """A provider as a model of the SDK; ``Agent(model=provider)`` makes one by itself (spec protocol 4).

    For the SDK's own agents: ``agents.Agent(model=ProviderModel(provider))``.

    Args:
        provider: The provider. With an attribute ``supports_output_schema = True`` it is given the schema of
            a structured output in ``context.output_schema``; any other is asked by a tool or by the prompt.
            With a method ``stream``, streamed runs use that (``StreamingProvider``).

    Raises:
        InvalidOptionError: E75, it is no provider.
    """

    def __init__(self, provider: Provider) -> None:
        if not is_provider(provider):
            reason = f"must have a name and an async generate(prompt, context), {provider!r} has not"
            raise InvalidOptionError(option="provider", reason=reason)
        self.provider = provider
        self.base_url = f"provider:{next(_numbers)}"
        self._tools = Tools(provider.name)

    @property
    def model(self) -> str:
        """The provider's name, in traces."""
        return self.provider.name

    @property
    def asking_family(self) -> str:
        """How the provider is asked for a structured output."""
        return "schema provider" if getattr(self.provider, "supports_output_schema", False) else "provider"

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[Any],
        model_settings: ModelSettings,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Handoff[Any, Any]],
        tracing: ModelTracing,
        **asked: Any,
    ) -> ModelResponse:
        """Ask the provider.

        Raises:
            AgentPainException: E51, it returned no ``ProviderResponse``.
            UntranslatableError: E52, the conversation has something the protocol cannot carry.
            HostedToolError: E59, the agent has tools that OpenAI runs.
            InvalidOptionError: E75, something is asked that only OpenAI keeps.
        """
        request = await self._asked(
            system_instructions, input, model_settings, tools, output_schema, handoffs, asked
        )
        with model_span(self.model, model_settings, tracing) as span:
            span.asked(system_instructions, input)
            response = await self._generated(request)
            items, usage = sdk_items(response.segments, request.call_ids), sdk_usage(response.metadata)
            span.answered(items, usage, response.metadata)
        return ModelResponse(output=list(items), usage=usage, response_id=None)

    async def stream_response(
        self,
        system_instructions: str | None,
        input: str | list[Any],
        model_settings: ModelSettings,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Handoff[Any, Any]],
        tracing: ModelTracing,
        **asked: Any,
    ) -> AsyncIterator[Any]:
        """Ask the provider and yield its answer as stream events, piece by piece if it streams.

        Raises:
            KantanAgentsError: As ``get_response``.
        """
        request = await self._asked(
            system_instructions, input, model_settings, tools, output_schema, handoffs, asked
        )
        with model_span(self.model, model_settings, tracing) as span:
            span.asked(system_instructions, input)
            async with aclosing(self._events(request, span)) as events:
                async for event in events:
                    yield event

    async def _events(self, request: _Asked, span: ModelSpan) -> AsyncGenerator[Any, None]:
        writer = EventWriter(self.model, request.call_ids)
        metadata: Any = None
        yield writer.begin()
        async with aclosing(self._pieces(request)) as pieces:
            async for piece, goes_on in pieces:
                if isinstance(piece, ProviderResponse):
                    metadata = piece.metadata
                for segment in piece.segments if isinstance(piece, ProviderResponse) else (piece,):
                    for event in writer.write(segment, goes_on=goes_on):
                        yield event
        usage = sdk_usage(metadata)
        for event in writer.end(usage):
            if event.type == "response.completed":  # whoever reads it reads no further
                span.answered(writer.items, usage, metadata)
            yield event

    async def _pieces(
        self, request: _Asked
    ) -> AsyncGenerator[tuple[ContentSegment | ProviderResponse, bool], None]:
        """Yield what the provider streams, each with whether it goes on with a text before it."""
        stream = getattr(self.provider, "stream", None)
        if not callable(stream):
            yield await self._generated(request), False
            return
        pieces = stream(request.prompt, request.context)
        with no_cancellation_of_its_own(self.model):
            if inspect.isawaitable(pieces):
                pieces = await pieces
        if not isinstance(pieces, AsyncIterable):
            reason = f"stream must be an async generator, it returned {type(pieces).__name__}"
            raise AgentPainException(provider=self.model, reason=reason)
        steps = aiter(pieces)
        try:
            while True:
                with no_cancellation_of_its_own(self.model):
                    piece = await anext(steps, _END)
                if piece is _END:
                    return
                yield understood_piece(self.model, piece), True
        finally:
            close = getattr(pieces, "aclose", None)
            if close is not None:
                await close()

    async def _generated(self, request: _Asked) -> ProviderResponse:
        with no_cancellation_of_its_own(self.model):
            answer: Any = self.provider.generate(request.prompt, request.context)
            answer = await answer if inspect.isawaitable(answer) else answer
        return understood(self.model, answer)

    async def _asked(
        self,
        instructions: str | None,
        input: str | list[Any],
        settings: ModelSettings,
        tools: Iterable[Any],
        output_schema: Any,
        handoffs: Iterable[Handoff[Any, Any]],
        asked: Mapping[str, Any],
    ) -> _Asked:
        refuse_kept_conversation(self.model, asked)
        specs = self._tools.specs(tools, handoffs)
        make = partial(context_of, specs, instructions, input, settings, output_schema)
        context = await to_thread.run_sync(make) if is_large(input) else make()
        return _Asked(prompt_of(context.messages), context)

    def __repr__(self) -> str:
        return f"ProviderModel({self.model!r})"
