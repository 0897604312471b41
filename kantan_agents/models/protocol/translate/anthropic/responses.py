"""Responses in Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kantan_agents.models.protocol.translate.anthropic.blocks import blocks_of, segment_of
from kantan_agents.models.protocol.translate.anthropic.tools import FORMAT, OWNER
from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.metadata import ResponseMetadata, read_texts
from kantan_agents.models.protocol.translate.reader import WireReader, unknown_fields
from kantan_agents.models.protocol.translate.usage import read_usage, write_usage
from kantan_agents.models.protocol.types import ProviderResponse

USAGE: Final[Mapping[str, tuple[str, ...]]] = {
    "input_tokens": ("input_tokens",),
    "output_tokens": ("output_tokens",),
    "cached_tokens": ("cache_read_input_tokens",),
    "cache_write_tokens": ("cache_creation_input_tokens",),
}
_FIXED = {"type": "message", "role": "assistant"}


def response_from_anthropic(data: Any) -> ProviderResponse:
    """Return a response of the Messages API as a ``ProviderResponse``, its blocks in order.

    ``metadata`` has ``id``, ``model``, ``finish_reason`` and ``usage``, whose ``input_tokens`` include cache
    reads and writes. Thinking, and other blocks without a protocol segment, are stored in
    ``extra["anthropic"]`` of the next segment, so that the next turn returns them.

    Raises:
        InvalidProtocolValueError: E50, with every problem.
    """
    reader = WireReader("answer of Anthropic's Messages API", OWNER)
    body = reader.expect_answer(data, "content")
    content = body["content"]
    if not content and body.get("type") != "message":
        reader.add("type", f"must be message, not {body.get('type')!r}"[:200])
    segments, left = reader.segments(
        reader.objects(content, "content"), lambda block, path: segment_of(block, reader, path)
    )
    counts, rest = read_usage(reader.field(body, "usage", dict, "") or {}, USAGE)
    texts = read_texts(reader, body, "", id="id", model="model", finish_reason="stop_reason")
    fixed = [name for name, value in _FIXED.items() if body.get(name) == value]
    fields = unknown_fields(body, "id", "model", "stop_reason", "content", "usage", *fixed)
    extra = reader.extra(fields=fields, before=left, usage=rest)
    reader.check()
    metadata = ResponseMetadata(**texts, usage=_all_input(counts, 1)).to_dict()
    return ProviderResponse(tuple(segments), metadata, extra=extra)


def response_to_anthropic(response: ProviderResponse) -> dict[str, Any]:
    """Return a ``ProviderResponse`` as a response of the Messages API.

    Raises:
        UntranslatableError: E52, with everything that would be lost: media, arguments that are not an object.
    """
    losses = Losses(FORMAT, OWNER)
    own = losses.format_extra(response.extra, "", "fields", "before", "usage")
    known = ResponseMetadata.of(response.metadata, losses)
    content = losses.blocks(own, "before", "")
    for index, segment in enumerate(response.segments):
        content = [*content, *blocks_of(segment, "assistant", losses, f"segments[{index}].")]
    body = {**_FIXED, **known.fields(id="id", model="model", finish_reason="stop_reason"), "content": content}
    counts = _all_input(known.usage, -1)
    if counts.get("input_tokens", 0) < 0:
        losses.add("metadata.usage.input_tokens", "is less than the cached tokens, which are part of it")
    usage = write_usage(counts, own.get("usage", {}), USAGE, losses, "extra.anthropic.usage")
    if usage:
        body["usage"] = usage
    body = losses.with_fields(body, own, "")
    losses.check()
    return body


def _all_input(counts: Mapping[str, Any], sign: int) -> dict[str, Any]:
    """Add (1) or subtract (-1) the cached tokens in the input tokens."""
    cached = [counts.get(name, 0) for name in ("cached_tokens", "cache_write_tokens")]
    given = counts.get("input_tokens")
    if not all(isinstance(count, int) for count in (given, *cached)):
        return dict(counts)
    return {**counts, "input_tokens": (given or 0) + sign * sum(cached)}
