"""Adds up the tokens of recorded model calls."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

TOKENS = ("input_tokens", "output_tokens", "total_tokens")


def used_tokens(usages: Iterable[Any]) -> dict[str, int]:
    """Return the tokens of model calls by kind; what is not a usage, such as None, has none."""
    tokens = dict.fromkeys(TOKENS, 0)
    for usage in usages:
        if isinstance(usage, dict):
            for kind in TOKENS:
                tokens[kind] += whole_number(usage.get(kind))
    return tokens


def whole_number(value: Any) -> int:
    """Return a recorded count as an int; 0 if it is not a finite number."""
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else 0
    return int(value) if isinstance(value, int) else 0
