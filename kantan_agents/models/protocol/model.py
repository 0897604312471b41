"""``ProviderModel``: a provider as an SDK model."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from functools import partial
from itertools import count
from typing import Any, TypeGuard
from weakref import WeakKeyDictionary

import attrs
from agents import Handoff, Model, ModelResponse, ModelSettings, ModelTracing
from anyio import to_thread

from kantan_agents.errors import AgentPainException, InvalidOptionError
from kantan_agents.models.finish_reasons import mark_cut_off, note_end
from kantan_agents.models.protocol.context import (
    ToolSpecs,
    is_large,
    last_user_text,
    provider_context,
    reject_server_side_state,
)
from kantan_agents.models.protocol.http import AnthropicProvider, GeminiProvider
from kantan_agents.models.protocol.json_data import plain
from kantan_agents.models.protocol.model_span import ModelSpan, model_span
from kantan_agents.models.protocol.pieces import ArgumentsPiece, Piece, ReasoningPiece
from kantan_agents.models.protocol.provider import Provider, ProviderContext
from kantan_agents.models.protocol.responses import (
    parse_piece,
    parse_response,
    sdk_items,
    sdk_usage,
)
from kantan_agents.models.protocol.streaming import EventWriter
from kantan_agents.models.protocol.types import ContentSegment, ProviderResponse

_numbers = count(1)
_addresses: WeakKeyDictionary[Provider, str] = WeakKeyDictionary()
_END: Any = object()


def is_provider(value: Any) -> TypeGuard[Provider]:
    """Return whether ``value`` is a provider: an instance with a str ``name`` and a ``generate`` method."""
    if not isinstance(value, Provider) or isinstance(value, type):
        return False
    return isinstance(value.name, str) and callable(value.generate)


@attrs.frozen
class _Request:
    prompt: str
    context: ProviderContext

    @property
    def call_ids(self) -> set[str]:
        parts = (part for message in self.context.messages for part in message.segments)
        return {part.tool_call.id for part in parts if part.tool_call is not None}


class ProviderModel(Model):
    """Wraps a custom model provider as an SDK model (spec protocol 4).

    ``Agent(model=provider)`` wraps the provider by itself. Use this class for an SDK agent:
    ``agents.Agent(model=ProviderModel(provider))``.

    Args:
        provider: The provider. With an attribute ``supports_output_schema = True``, it gets the schema of a
            structured output in ``context.output_schema``; otherwise a tool or the prompt requests that
            output. Streamed runs call its ``stream`` method if it has one (``StreamingProvider``).

    Raises:
        InvalidOptionError: E75, ``provider`` is not a provider.
    """

    def __init__(self, provider: Provider) -> None:
        if not is_provider(provider):
            reason = f"must have a name and an async generate(prompt, context), which {provider!r} lacks"
            raise InvalidOptionError(option="provider", reason=reason)
        self.provider = provider
        self.base_url = _address_of(provider)
        self._tools = ToolSpecs(provider.name)

    @property
    def model(self) -> str:
        """The provider's name, for traces."""
        return self.provider.name

    @property
    def structured_output_family(self) -> str:
        """The family that determines the provider's forms of structured output."""
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
        **server_state: Any,
    ) -> ModelResponse:
        """Call the provider and return its response.

        Raises:
            AgentPainException: E51, the provider did not return a ``ProviderResponse``.
            UntranslatableError: E52, the conversation has items that the protocol cannot represent.
            HostedToolError: E59, the agent has tools that OpenAI runs.
            InvalidOptionError: E75, the request refers to a conversation or a prompt stored at OpenAI.
        """
        request = await self._request(
            system_instructions, input, model_settings, tools, output_schema, handoffs, server_state
        )
        with model_span(self.model, model_settings, tracing) as span:
            span.record_input(system_instructions, input)
            response = await self._generate(request)
            items, usage = sdk_items(response.segments, request.call_ids), sdk_usage(response.metadata)
            answer = ModelResponse(output=list(items), usage=usage, response_id=None)
            self._note_end(answer, response.metadata, model_settings)
            span.record_output(answer, usage, response.metadata)
        return answer

    async def stream_response(
        self,
        system_instructions: str | None,
        input: str | list[Any],
        model_settings: ModelSettings,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Handoff[Any, Any]],
        tracing: ModelTracing,
        **server_state: Any,
    ) -> AsyncIterator[Any]:
        """Call the provider and yield the stream events of its response, as they arrive if it can stream.

        Raises:
            KantanAgentsError: As for ``get_response``.
        """
        request = await self._request(
            system_instructions,
            input,
            model_settings,
            tools,
            output_schema,
            handoffs,
            server_state,
            is_streamed=True,
        )
        with model_span(self.model, model_settings, tracing) as span:
            span.record_input(system_instructions, input)
            async with aclosing(self._events(request, span, model_settings)) as events:
                async for event in events:
                    yield event

    async def _events(
        self, request: _Request, span: ModelSpan, settings: ModelSettings
    ) -> AsyncGenerator[Any, None]:
        writer = EventWriter(self.model, request.call_ids)
        metadata: Any = None
        yield writer.begin()
        async with aclosing(self._pieces(request)) as pieces:
            async for piece, continues_text in pieces:
                if isinstance(piece, (ReasoningPiece, ArgumentsPiece)):
                    for event in writer.write_piece(piece):
                        yield event
                    continue
                # A provider may later change a piece that it has yielded.
                if isinstance(piece, ProviderResponse):
                    metadata = plain(piece.metadata)
                given = piece.segments if isinstance(piece, ProviderResponse) else (piece,)
                for segment in [segment.copied() for segment in given]:
                    for event in writer.write(segment, continues_text=continues_text):
                        yield event
        usage = sdk_usage(metadata)
        for event in writer.end(usage):
            if event.type == "response.completed":  # the consumer stops reading here
                self._note_end(event.response, metadata, settings)
                span.record_output(event.response, usage, metadata)
            yield event

    def _note_end(self, answer: Any, metadata: Any, settings: ModelSettings) -> None:
        said = metadata.get("finish_reason") if isinstance(metadata, Mapping) else None
        reason = note_end(said, self.model, settings.max_tokens)
        if reason is not None:
            mark_cut_off(answer, reason)

    async def _pieces(
        self, request: _Request
    ) -> AsyncGenerator[tuple[ContentSegment | ProviderResponse | Piece, bool], None]:
        """Yield the streamed values, each with whether it continues the text."""
        stream = getattr(self.provider, "stream", None)
        if not callable(stream):
            yield await self._generate(request), False
            return
        pieces = stream(request.prompt, request.context)
        with _reject_own_cancellation(self.model):
            if inspect.isawaitable(pieces):
                pieces = await pieces
        if not isinstance(pieces, AsyncIterable):
            reason = f"stream must be an async generator, it returned {type(pieces).__name__}"
            raise AgentPainException(provider=self.model, reason=reason)
        steps = aiter(pieces)
        try:
            while True:
                with _reject_own_cancellation(self.model):
                    piece = await anext(steps, _END)
                if piece is _END:
                    return
                yield parse_piece(self.model, piece), True
        finally:
            close = getattr(pieces, "aclose", None)
            if close is not None:
                await close()

    async def _generate(self, request: _Request) -> ProviderResponse:
        with _reject_own_cancellation(self.model):
            answer: Any = self.provider.generate(request.prompt, request.context)
            answer = await answer if inspect.isawaitable(answer) else answer
        return parse_response(self.model, answer)

    async def _request(
        self,
        instructions: str | None,
        input: str | list[Any],
        settings: ModelSettings,
        tools: Iterable[Any],
        output_schema: Any,
        handoffs: Iterable[Handoff[Any, Any]],
        server_state: Mapping[str, Any],
        *,
        is_streamed: bool = False,
    ) -> _Request:
        reject_server_side_state(self.model, server_state)
        specs = self._tools.specs(tools, handoffs)
        # This package's providers change nothing, and requests may be large.
        lend = type(self.provider) not in (AnthropicProvider, GeminiProvider)
        make = partial(
            provider_context,
            specs,
            instructions,
            input,
            settings,
            output_schema,
            lend=lend,
            is_streamed=is_streamed,
        )
        context = await to_thread.run_sync(make) if is_large(input) else make()
        return _Request(last_user_text(context.messages), context)

    def __repr__(self) -> str:
        return f"ProviderModel({self.model!r})"


def _address_of(provider: Provider) -> str:
    """Return an identity for a provider, shared by its agents."""
    try:
        return _addresses.setdefault(provider, f"provider:{next(_numbers)}")
    except TypeError:  # not hashable or weakly referenceable
        return f"provider:{next(_numbers)}"


@contextmanager
def _reject_own_cancellation(provider: str) -> Iterator[None]:
    """Replace a ``CancelledError`` of the provider, which would stop the run silently, by E51.

    Python 3.10 cannot distinguish a real cancellation, so there it propagates.
    """
    try:
        yield
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        cancelling = getattr(task, "cancelling", None)
        if cancelling is None or cancelling():
            raise
        reason = "it raised CancelledError, although it was not cancelled"
        raise AgentPainException(provider=provider, reason=reason) from error
