"""Converts responses to the SDK's items."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import attrs
from agents import Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseUsage

from kantan_agents.errors import AgentPainException, InvalidProtocolValueError
from kantan_agents.models.protocol.json_data import is_text
from kantan_agents.models.protocol.pieces import ArgumentsPiece, Piece, ReasoningPiece
from kantan_agents.models.protocol.translate.openai_responses.items import output_items
from kantan_agents.models.protocol.types import ContentSegment, ProviderResponse
from kantan_agents.models.protocol.usage import usage_of

_MOST_REQUESTS = 1_000
Item = ResponseOutputMessage | ResponseFunctionToolCall


def parse_response(provider: str, answer: Any) -> ProviderResponse:
    """Return a ``ProviderResponse``, from JSON if needed; else E51."""
    if isinstance(answer, ProviderResponse):
        return answer
    if not isinstance(answer, Mapping):
        reason = f"it must return a ProviderResponse, it returned {type(answer).__name__}"
        raise AgentPainException(provider=provider, reason=reason)
    try:
        return ProviderResponse.from_dict(answer)
    except InvalidProtocolValueError as error:
        raise AgentPainException(provider=provider, reason=error.data["listed"]) from error


def parse_piece(provider: str, piece: Any) -> ContentSegment | ProviderResponse | Piece:
    """Return a streamed value, from JSON if needed; else E51."""
    if isinstance(piece, ContentSegment):
        return piece
    if isinstance(piece, (ReasoningPiece, ArgumentsPiece)):
        if all(is_text(value) for value in attrs.astuple(piece)):
            return piece
        reason = f"it streamed {type(piece).__name__} with something else than texts"
        raise AgentPainException(provider=provider, reason=reason)
    if isinstance(piece, Mapping) and "segments" not in piece:
        try:
            return ContentSegment.from_dict(piece)
        except InvalidProtocolValueError as error:
            raise AgentPainException(provider=provider, reason=error.data["listed"]) from error
    if isinstance(piece, (ProviderResponse, Mapping)):
        return parse_response(provider, piece)
    reason = f"it must stream ContentSegments, it streamed {type(piece).__name__}"
    raise AgentPainException(provider=provider, reason=reason)


def sdk_items(segments: Iterable[ContentSegment], used_ids: Collection[str] = ()) -> list[Item]:
    """Return segments as the SDK's output items."""
    return [sdk_item(item) for item in output_items(segments, used_ids)]


def sdk_item(item: Mapping[str, Any]) -> Item:
    """Return an output item as the SDK's object."""
    if item["type"] == "function_call":
        return ResponseFunctionToolCall.model_validate(item)
    return ResponseOutputMessage.model_validate(item)


def sdk_usage(metadata: Any) -> Usage:
    """Return the SDK's usage from metadata."""
    usage = Usage(requests=_requests(metadata))
    known = usage_of(metadata)
    if known is None:
        return usage
    usage.input_tokens = known.input_tokens
    usage.output_tokens = known.output_tokens
    usage.total_tokens = known.total_tokens
    # Copied: the fields of these objects differ between client versions.
    usage.input_tokens_details = usage.input_tokens_details.model_copy(
        update={"cached_tokens": known.cached_tokens}
    )
    usage.output_tokens_details = usage.output_tokens_details.model_copy(
        update={"reasoning_tokens": known.reasoning_tokens}
    )
    return usage


def response_usage(usage: Usage) -> ResponseUsage:
    """Return usage in a response's form."""
    return ResponseUsage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        input_tokens_details=usage.input_tokens_details,
        output_tokens_details=usage.output_tokens_details,
    )


def _requests(metadata: Any) -> int:
    requests = metadata.get("requests") if isinstance(metadata, Mapping) else None
    if not isinstance(requests, int) or isinstance(requests, bool):
        return 1
    return requests if 1 <= requests <= _MOST_REQUESTS else 1
