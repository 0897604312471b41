"""Adds up the tokens of recorded model calls."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

TOKENS = ("input_tokens", "output_tokens", "total_tokens")


def used_tokens(usages: Iterable[Any]) -> dict[str, int]:
    """Return the tokens of model calls by kind; what is not a usage, such as None, has none."""
    return dict(zip(TOKENS, summed_tokens(usages), strict=True))


def summed_tokens(usages: Iterable[Any]) -> tuple[int, int, int]:
    """Return the input, output and total tokens of model calls."""
    given, answered, total = 0, 0, 0
    for usage in usages:
        if isinstance(usage, dict):
            find = usage.get
            given += whole_number(find("input_tokens"))
            answered += whole_number(find("output_tokens"))
            total += whole_number(find("total_tokens"))
    return given, answered, total


def whole_number(value: Any) -> int:
    """Return a recorded count as an int; 0 if it is not a finite number."""
    if type(value) is int:  # as almost all are, and a search has many
        return value
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else 0
    return int(value) if isinstance(value, int) else 0
