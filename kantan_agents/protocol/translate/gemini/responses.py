"""Answers in the Gemini API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kantan_agents.protocol.translate.gemini.parts import parts_of, segment_of
from kantan_agents.protocol.translate.gemini.tools import FORMAT, OWNER
from kantan_agents.protocol.translate.losses import Losses
from kantan_agents.protocol.translate.metadata import Known, read_texts
from kantan_agents.protocol.translate.reading import Reading, unknown
from kantan_agents.protocol.translate.usage import read_usage, write_usage
from kantan_agents.protocol.types import ProviderResponse

USAGE: Final[Mapping[str, tuple[str, ...]]] = {
    "input_tokens": ("promptTokenCount",),
    "output_tokens": ("candidatesTokenCount",),
    "total_tokens": ("totalTokenCount",),
    "cached_tokens": ("cachedContentTokenCount",),
    "reasoning_tokens": ("thoughtsTokenCount",),
}


def response_from_gemini(data: Any) -> ProviderResponse:
    """Return the answer of ``generateContent``, its parts in order.

    ``metadata`` has ``id``, ``model``, ``finish_reason`` and ``usage``, in which ``output_tokens`` are all of
    them, also those of thinking. A ``thoughtSignature`` is in ``extra["gemini"]`` of its segment, a thought
    in that of the segment after it, so that both go back with the next turn. A prompt that was blocked is an
    answer without segments, its ``finish_reason`` is why.

    Raises:
        InvalidProtocolValueError: E50, with every mistake; more than one candidate is one.
    """
    reading = Reading("answer of the Gemini API", OWNER)
    body = reading.whole(data, dict)
    feedback = reading.field(body, "promptFeedback", dict, "") or {}
    candidates = reading.field(body, "candidates", list, "") or []
    if len(candidates) > 1 or (not candidates and "blockReason" not in feedback):
        reading.add("candidates", f"must be one, not {len(candidates)}")
    candidate = (reading.objects(candidates[:1], "candidates") or [("", {})])[0][1]
    content = reading.field(candidate, "content", dict, "candidates[0].") or {}
    parts = reading.field(content, "parts", list, "candidates[0].content.") or []
    segments, left = reading.gathered(
        reading.objects(parts, "candidates[0].content.parts"),
        lambda part, path: segment_of(part, reading, path),
    )
    counts, rest = read_usage(reading.field(body, "usageMetadata", dict, "") or {}, USAGE)
    texts = read_texts(reading, feedback, "promptFeedback.", finish_reason="blockReason")
    texts |= read_texts(reading, body, "", id="responseId", model="modelVersion")
    texts |= read_texts(reading, candidate, "candidates[0].", finish_reason="finishReason")
    index = ("index",) if candidate.get("index") == 0 else ()
    role = ("role",) if content.get("role") == "model" else ()
    extra = reading.kept(
        fields=unknown(body, "candidates", "usageMetadata", "responseId", "modelVersion"),
        candidate=unknown(candidate, "content", "finishReason", *index),
        content=unknown(content, "parts", *role),
        before=left,
        usage=rest,
    )
    reading.check()
    metadata = Known(**texts, usage=_all_output(counts, 1)).as_metadata()
    return ProviderResponse(tuple(segments), metadata, extra=extra)


def response_to_gemini(response: ProviderResponse) -> dict[str, Any]:
    """Return an answer as one of ``generateContent``.

    Raises:
        UntranslatableError: E52, with all that would be lost: ui, media without a type, arguments that are
            no object.
    """
    losses = Losses(FORMAT, OWNER)
    own = losses.own(response.extra, "", "fields", "candidate", "content", "before", "usage")
    known = Known.of(response.metadata, losses)
    parts = losses.blocks(own, "before", "")
    for place, segment in enumerate(response.segments):
        parts = [*parts, *parts_of(segment, losses, f"segments[{place}].")]
    content = losses.with_fields({"role": "model", "parts": parts}, {"fields": own.get("content", {})}, "")
    candidate = {"content": content, **known.fields(finish_reason="finishReason"), "index": 0}
    candidate = losses.with_fields(candidate, {"fields": own.get("candidate", {})}, "")
    body = {"candidates": [candidate], **known.fields(id="responseId", model="modelVersion")}
    counts = _all_output(known.usage, -1)
    if counts.get("output_tokens", 0) < 0:
        losses.add("metadata.usage.output_tokens", "is less than those of reasoning, which are among them")
    usage = write_usage(counts, own.get("usage", {}), USAGE, losses, "extra.gemini.usage")
    if usage:
        body["usageMetadata"] = usage
    body = losses.with_fields(body, own, "")
    losses.check()
    return body


def _all_output(counts: Mapping[str, Any], sign: int) -> dict[str, Any]:
    """Return the counts with those of thinking among the output tokens (1), or apart from them (-1)."""
    thinking, given = counts.get("reasoning_tokens", 0), counts.get("output_tokens", 0)
    if not isinstance(thinking, int) or not isinstance(given, int) or not thinking:
        return dict(counts)
    return {**counts, "output_tokens": given + sign * thinking}
