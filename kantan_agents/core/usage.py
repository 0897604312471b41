"""Usage as numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from kantan_agents.core.items import get

TOKENS: Final = ("input_tokens", "output_tokens", "total_tokens")

NO_USAGE: Final[Mapping[str, int]] = dict.fromkeys(
    ("requests", *TOKENS, "cached_tokens", "reasoning_tokens"), 0
)


def usage_numbers(usage: Any) -> dict[str, int]:
    """Return usage without zero details."""
    # In every run's path: one function, without a loop.
    numbers = {
        "requests": usage.requests,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
    }
    cached = getattr(usage.input_tokens_details, "cached_tokens", 0)
    if cached:
        numbers["cached_tokens"] = cached
    reasoning = getattr(usage.output_tokens_details, "reasoning_tokens", 0)
    if reasoning:
        numbers["reasoning_tokens"] = reasoning
    return numbers


def tokens_of(counted: Any) -> tuple[int, int]:
    """Return input and output tokens; 0 if missing."""
    usage = get(counted, "usage") or {}
    return max(0, whole_number(usage.get("input_tokens"))), max(0, whole_number(usage.get("output_tokens")))


def used_tokens(usages: Iterable[Any]) -> dict[str, int]:
    """Sum tokens by kind."""
    given, answered, total = 0, 0, 0
    for usage in usages:
        if isinstance(usage, dict):
            find = usage.get
            given += whole_number(find("input_tokens"))
            answered += whole_number(find("output_tokens"))
            total += whole_number(find("total_tokens"))
    return dict(zip(TOKENS, (given, answered, total), strict=True))


def whole_number(value: Any) -> int:
    """Return a recorded count; 0 if invalid."""
    if type(value) is int:  # almost all are, and a search has many
        return value
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else 0
    return int(value) if isinstance(value, int) else 0
