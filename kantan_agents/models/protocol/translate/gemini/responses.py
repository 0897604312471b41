"""Responses in the Gemini API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kantan_agents.models.protocol.translate.gemini.parts import parts_of, segment_of
from kantan_agents.models.protocol.translate.gemini.tools import FORMAT, OWNER
from kantan_agents.models.protocol.translate.losses import Losses
from kantan_agents.models.protocol.translate.metadata import ResponseMetadata, read_texts
from kantan_agents.models.protocol.translate.reader import WireReader, unknown_fields
from kantan_agents.models.protocol.translate.usage import read_usage, write_usage
from kantan_agents.models.protocol.types import ProviderResponse

USAGE: Final[Mapping[str, tuple[str, ...]]] = {
    "input_tokens": ("promptTokenCount",),
    "output_tokens": ("candidatesTokenCount",),
    "total_tokens": ("totalTokenCount",),
    "cached_tokens": ("cachedContentTokenCount",),
    "reasoning_tokens": ("thoughtsTokenCount",),
}


def response_from_gemini(data: Any) -> ProviderResponse:
    """Return a response of ``generateContent`` as a ``ProviderResponse``, its parts in order.

    ``metadata`` has ``id``, ``model``, ``finish_reason`` and ``usage``, whose ``output_tokens`` include
    thinking. ``extra["gemini"]`` of a segment stores its ``thoughtSignature`` and the thoughts before it, so
    that the next turn returns them. For a blocked prompt, the result has no segments, and ``finish_reason``
    is the reason.

    Raises:
        InvalidProtocolValueError: E50, with every problem; more than one candidate is a problem.
    """
    reader = WireReader("answer of the Gemini API", OWNER)
    body = reader.expect(data, dict)
    feedback = reader.field(body, "promptFeedback", dict, "") or {}
    if "blockReason" not in feedback:
        body = reader.expect_answer(body, "candidates")
    candidates = reader.field(body, "candidates", list, "") or []
    if len(candidates) > 1 or (not candidates and "blockReason" not in feedback):
        reader.add("candidates", f"must be one, not {len(candidates)}")
    candidate = (reader.objects(candidates[:1], "candidates") or [("", {})])[0][1]
    if "blockReason" not in feedback and not any(candidate.get(name) for name in ("content", "finishReason")):
        reader.add("candidates[0]", "has neither content nor finishReason")
    content = reader.field(candidate, "content", dict, "candidates[0].") or {}
    parts = reader.field(content, "parts", list, "candidates[0].content.") or []
    segments, left = reader.segments(
        reader.objects(parts, "candidates[0].content.parts"),
        lambda part, path: segment_of(part, reader, path),
    )
    counts, rest = read_usage(reader.field(body, "usageMetadata", dict, "") or {}, USAGE)
    texts = read_texts(reader, feedback, "promptFeedback.", finish_reason="blockReason")
    texts |= read_texts(reader, body, "", id="responseId", model="modelVersion")
    texts |= read_texts(reader, candidate, "candidates[0].", finish_reason="finishReason")
    index = ("index",) if candidate.get("index") == 0 else ()
    role = ("role",) if content.get("role") == "model" else ()
    extra = reader.extra(
        fields=unknown_fields(body, "candidates", "usageMetadata", "responseId", "modelVersion"),
        candidate=unknown_fields(candidate, "content", "finishReason", *index),
        content=unknown_fields(content, "parts", *role),
        before=left,
        usage=rest,
    )
    reader.check()
    metadata = ResponseMetadata(**texts, usage=_all_output(counts, 1)).to_dict()
    return ProviderResponse(tuple(segments), metadata, extra=extra)


def response_to_gemini(response: ProviderResponse) -> dict[str, Any]:
    """Return a ``ProviderResponse`` as a response of ``generateContent``.

    Raises:
        UntranslatableError: E52, with everything that would be lost: ``ui``, media without a type, arguments
            that are not an object.
    """
    losses = Losses(FORMAT, OWNER)
    own = losses.format_extra(response.extra, "", "fields", "candidate", "content", "before", "usage")
    known = ResponseMetadata.of(response.metadata, losses)
    parts = losses.blocks(own, "before", "")
    for index, segment in enumerate(response.segments):
        parts = [*parts, *parts_of(segment, losses, f"segments[{index}].")]
    content = losses.with_fields({"role": "model", "parts": parts}, {"fields": own.get("content", {})}, "")
    candidate = {"content": content, **known.fields(finish_reason="finishReason"), "index": 0}
    candidate = losses.with_fields(candidate, {"fields": own.get("candidate", {})}, "")
    body = {"candidates": [candidate], **known.fields(id="responseId", model="modelVersion")}
    counts = _all_output(known.usage, -1)
    if counts.get("output_tokens", 0) < 0:
        losses.add("metadata.usage.output_tokens", "is less than the reasoning tokens, which are part of it")
    usage = write_usage(counts, own.get("usage", {}), USAGE, losses, "extra.gemini.usage")
    if usage:
        body["usageMetadata"] = usage
    body = losses.with_fields(body, own, "")
    losses.check()
    return body


def _all_output(counts: Mapping[str, Any], sign: int) -> dict[str, Any]:
    """Add (1) or subtract (-1) the thinking tokens in the output tokens."""
    thinking, given = counts.get("reasoning_tokens", 0), counts.get("output_tokens", 0)
    if not isinstance(thinking, int) or not isinstance(given, int) or not thinking:
        return dict(counts)
    return {**counts, "output_tokens": given + sign * thinking}
