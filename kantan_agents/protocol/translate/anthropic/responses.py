"""Answers in Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kantan_agents.protocol.translate.anthropic.blocks import blocks_of, segment_of
from kantan_agents.protocol.translate.anthropic.tools import FORMAT, OWNER
from kantan_agents.protocol.translate.losses import Losses
from kantan_agents.protocol.translate.metadata import Known, read_texts
from kantan_agents.protocol.translate.reading import Reading, unknown
from kantan_agents.protocol.translate.usage import read_usage, write_usage
from kantan_agents.protocol.types import ProviderResponse

USAGE: Final[Mapping[str, tuple[str, ...]]] = {
    "input_tokens": ("input_tokens",),
    "output_tokens": ("output_tokens",),
    "cached_tokens": ("cache_read_input_tokens",),
    "cache_write_tokens": ("cache_creation_input_tokens",),
}
_FIXED = {"type": "message", "role": "assistant"}


def response_from_anthropic(data: Any) -> ProviderResponse:
    """Return the answer of the Messages API, its blocks in order.

    ``metadata`` has ``id``, ``model``, ``finish_reason`` and ``usage``, in which ``input_tokens`` are all
    of them, also those from a cache. Thinking, and any other block the protocol has no segment for, is in
    ``extra["anthropic"]`` of the segment after it, so that it goes back with the next turn.

    Raises:
        InvalidProtocolValueError: E50, with every mistake.
    """
    reading = Reading("answer of Anthropic's Messages API", OWNER)
    body = reading.whole(data, dict)
    content = reading.needed(body, "content", list, "") or []
    segments, left = reading.gathered(
        reading.objects(content, "content"), lambda block, path: segment_of(block, reading, path)
    )
    counts, rest = read_usage(reading.field(body, "usage", dict, "") or {}, USAGE)
    texts = read_texts(reading, body, "", id="id", model="model", finish_reason="stop_reason")
    fixed = [name for name, value in _FIXED.items() if body.get(name) == value]
    fields = unknown(body, "id", "model", "stop_reason", "content", "usage", *fixed)
    extra = reading.kept(fields=fields, before=left, usage=rest)
    reading.check()
    metadata = Known(**texts, usage=_all_input(counts, 1)).as_metadata()
    return ProviderResponse(tuple(segments), metadata, extra=extra)


def response_to_anthropic(response: ProviderResponse) -> dict[str, Any]:
    """Return an answer as one of the Messages API.

    Raises:
        UntranslatableError: E52, with all that would be lost: media, arguments that are no object.
    """
    losses = Losses(FORMAT, OWNER)
    own = losses.own(response.extra, "", "fields", "before", "usage")
    known = Known.of(response.metadata, losses)
    content = losses.blocks(own, "before", "")
    for place, segment in enumerate(response.segments):
        content = [*content, *blocks_of(segment, "assistant", losses, f"segments[{place}].")]
    body = {**_FIXED, **known.fields(id="id", model="model", finish_reason="stop_reason"), "content": content}
    counts = _all_input(known.usage, -1)
    if counts.get("input_tokens", 0) < 0:
        losses.add(
            "metadata.usage.input_tokens", "is less than those from and for a cache, which are among them"
        )
    usage = write_usage(counts, own.get("usage", {}), USAGE, losses, "extra.anthropic.usage")
    if usage:
        body["usage"] = usage
    body = losses.with_fields(body, own, "")
    losses.check()
    return body


def _all_input(counts: Mapping[str, Any], sign: int) -> dict[str, Any]:
    """Return the counts with those of the cache among the input tokens (1), or apart from them (-1)."""
    cached = [counts.get(name, 0) for name in ("cached_tokens", "cache_write_tokens")]
    given = counts.get("input_tokens")
    if not all(isinstance(count, int) for count in (given, *cached)):
        return dict(counts)
    return {**counts, "input_tokens": (given or 0) + sign * sum(cached)}
