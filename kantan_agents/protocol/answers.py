"""A provider's answer: understood, and in the SDK's words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from agents import Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage

from kantan_agents.errors import AgentPainException, InvalidProtocolValueError
from kantan_agents.protocol.translate.responses_items import output_items
from kantan_agents.protocol.types import ContentSegment, ProviderResponse
from kantan_agents.protocol.usage import usage_of

Item = ResponseOutputMessage | ResponseFunctionToolCall


def understood(provider: str, answer: Any) -> ProviderResponse:
    """Return what a provider answered; JSON data in the protocol's spelling is an answer too.

    Raises:
        AgentPainException: E51, it is something else.
    """
    if isinstance(answer, ProviderResponse):
        return answer
    if not isinstance(answer, Mapping):
        reason = f"it must return a ProviderResponse, it returned {type(answer).__name__}"
        raise AgentPainException(provider=provider, reason=reason)
    try:
        return ProviderResponse.from_dict(answer)
    except InvalidProtocolValueError as error:
        raise AgentPainException(provider=provider, reason=error.data["listed"]) from error


def understood_piece(provider: str, piece: Any) -> ContentSegment | ProviderResponse:
    """Return what a provider streamed, as ``understood`` does.

    Raises:
        AgentPainException: E51, it is neither a segment nor an answer.
    """
    if isinstance(piece, ContentSegment):
        return piece
    if isinstance(piece, Mapping) and "segments" not in piece:
        try:
            return ContentSegment.from_dict(piece)
        except InvalidProtocolValueError as error:
            raise AgentPainException(provider=provider, reason=error.data["listed"]) from error
    if isinstance(piece, (ProviderResponse, Mapping)):
        return understood(provider, piece)
    reason = f"it must stream ContentSegments, it streamed {type(piece).__name__}"
    raise AgentPainException(provider=provider, reason=reason)


def sdk_items(segments: Iterable[ContentSegment], taken: Collection[str] = ()) -> list[Item]:
    """Return the segments of an answer as the SDK's output items."""
    return [sdk_item(item) for item in output_items(segments, taken)]


def sdk_item(item: Mapping[str, Any]) -> Item:
    """Return an output item as the SDK's object."""
    if item["type"] == "function_call":
        return ResponseFunctionToolCall.model_validate(item)
    return ResponseOutputMessage.model_validate(item)


def sdk_usage(metadata: Any) -> Usage:
    """Return what an answer took: one request, and the tokens its metadata tells of."""
    usage = Usage(requests=1)
    known = usage_of(metadata)
    if known is None:
        return usage
    usage.input_tokens = known.input_tokens
    usage.output_tokens = known.output_tokens
    usage.total_tokens = known.total_tokens
    # Copies: the fields of these objects are not the same in all versions of the client.
    usage.input_tokens_details = usage.input_tokens_details.model_copy(
        update={"cached_tokens": known.cached_tokens}
    )
    usage.output_tokens_details = usage.output_tokens_details.model_copy(
        update={"reasoning_tokens": known.reasoning_tokens}
    )
    return usage
