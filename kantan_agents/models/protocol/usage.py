"""Token counts in response metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

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
_BESIDE_INPUT = ("cache_read_input_tokens", "cache_creation_input_tokens")
_REASONING = ("reasoning_tokens", "reasoningTokens", "thoughtsTokenCount")
_INPUT_DETAILS = ("input_tokens_details", "inputTokensDetails", "prompt_tokens_details")
_OUTPUT_DETAILS = ("output_tokens_details", "outputTokensDetails", "completion_tokens_details")

MOST_TOKENS = 2**63 - 1
"""The largest count: 64 bits, as in databases."""


@attrs.frozen
class TokenUsage:
    """Token counts of one response; the total may include other tokens."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0


def usage_of(metadata: Any) -> TokenUsage | None:
    """Return the counts in ``metadata["usage"]``, in any spelling.

    Invalid counts are ignored: they must not lose the response.
    """
    usage = metadata.get("usage") if isinstance(metadata, Mapping) else None
    if not isinstance(usage, Mapping):
        return None
    sent, generated = _count(usage, _INPUT), _count(usage, _OUTPUT)
    if "input_tokens" in usage:  # Anthropic's count, without cache reads and writes
        sent = (sent or 0) + sum(_count(usage, (name,)) or 0 for name in _BESIDE_INPUT)
    total = _count(usage, _TOTAL)
    if sent is None and generated is None and total is None:
        return None
    cached = _count(usage, _CACHED) or _count(_details(usage, _INPUT_DETAILS), _CACHED)
    reasoning = _count(usage, _REASONING) or _count(_details(usage, _OUTPUT_DETAILS), _REASONING)
    return TokenUsage(
        sent or 0,
        generated or 0,
        (sent or 0) + (generated or 0) if total is None else total,
        cached or 0,
        reasoning or 0,
    )


def _details(usage: Mapping[str, Any], names: tuple[str, ...]) -> Mapping[str, Any]:
    return next((usage[name] for name in names if isinstance(usage.get(name), Mapping)), {})


def _count(usage: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = usage.get(name)
        if is_count(value):
            return value
    return None


def is_count(value: Any) -> TypeGuard[int]:
    """Return whether a value is a 64-bit count."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS
