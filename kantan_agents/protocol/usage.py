"""How many tokens an answer took, from the metadata of whoever gave it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

_INPUT = ("input_tokens", "inputTokens", "prompt_tokens", "promptTokens", "promptTokenCount")
_OUTPUT = (
    "output_tokens",
    "outputTokens",
    "completion_tokens",
    "completionTokens",
    "candidatesTokenCount",
)
_TOTAL = ("total_tokens", "totalTokens", "totalTokenCount")
_CACHED = (
    "cached_tokens",
    "cachedTokens",
    "cached_input_tokens",
    "cachedInputTokens",
    "cache_read_input_tokens",
    "cachedContentTokenCount",
)
_REASONING = ("reasoning_tokens", "reasoningTokens", "thoughtsTokenCount")
_INPUT_DETAILS = ("input_tokens_details", "inputTokensDetails", "prompt_tokens_details")
_OUTPUT_DETAILS = ("output_tokens_details", "outputTokensDetails", "completion_tokens_details")


@attrs.frozen
class TokenUsage:
    """Tokens of one answer.

    Attributes:
        input_tokens: Tokens of the request.
        output_tokens: Tokens of the answer.
        total_tokens: Both, or more where a provider counts more.
        cached_tokens: Those of the request that came from a cache.
        reasoning_tokens: Those of the answer that nobody sees.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0


def usage_of(metadata: Any) -> TokenUsage | None:
    """Return what ``metadata["usage"]`` says, in any of the usual spellings; None if it says nothing.

    What is no whole number from 0 on is passed over: a wrong count is no reason to lose an answer.
    """
    usage = metadata.get("usage") if isinstance(metadata, Mapping) else None
    if not isinstance(usage, Mapping):
        return None
    given, written = _count(usage, _INPUT), _count(usage, _OUTPUT)
    total = _count(usage, _TOTAL)
    if given is None and written is None and total is None:
        return None
    cached = _count(usage, _CACHED) or _count(_details(usage, _INPUT_DETAILS), _CACHED)
    reasoning = _count(usage, _REASONING) or _count(_details(usage, _OUTPUT_DETAILS), _REASONING)
    return TokenUsage(
        given or 0,
        written or 0,
        (given or 0) + (written or 0) if total is None else total,
        cached or 0,
        reasoning or 0,
    )


def _details(usage: Mapping[str, Any], names: tuple[str, ...]) -> Mapping[str, Any]:
    return next((usage[name] for name in names if isinstance(usage.get(name), Mapping)), {})


def _count(usage: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = usage.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
    return None
