"""Metrics that must not become worse."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final, Literal

import attrs

from kantan_agents.errors import InvalidRolloutError

_PERCENT: Final = re.compile(r"\+\s*(\d{1,4}(?:\.\d+)?)\s*%")
_LATENCY: Final = re.compile(r"latency_p([1-9]\d?)")
_KINDS: Final = "error, cost, tokens, latency_p50, latency_p95 and the like"


@attrs.frozen
class RolloutGuard:
    """A metric that a new arm must not make worse.

    ``margin`` is for the share of failed runs, ``factor`` for other metrics.
    """

    name: str
    limit: str | float
    kind: Literal["error", "cost", "tokens", "latency"]
    margin: float = 0.0
    factor: float = 1.0
    quantile: float = 0.0


def checked_guards(guards: Any) -> tuple[RolloutGuard, ...]:
    """Return guards from limits by name; E110 if invalid."""
    if guards is None:
        return ()
    if not isinstance(guards, Mapping):
        reason = f"must be a dict such as {{'error': 0.02, 'cost': '+20%'}}, not {type(guards).__name__}"
        raise InvalidRolloutError(option="guards", reason=reason)
    return tuple(_guard(name, limit) for name, limit in guards.items())


def _guard(name: Any, limit: Any) -> RolloutGuard:
    if name == "error":
        is_number = isinstance(limit, (int, float)) and not isinstance(limit, bool)
        if not is_number or not (math.isfinite(limit) and 0 <= limit < 1):
            example = "such as 0.02 for two more failed runs in a hundred"
            reason = f"of 'error' must be a number from 0 to 1, {example}, not {limit!r}"
            raise InvalidRolloutError(option="guards", reason=reason)
        return RolloutGuard(name, float(limit), "error", margin=float(limit))
    latency = _LATENCY.fullmatch(name) if isinstance(name, str) else None
    if name not in ("cost", "tokens") and latency is None:
        raise InvalidRolloutError(option="guards", reason=f"has {name!r}; there are {_KINDS}")
    percent = _PERCENT.fullmatch(limit.strip()) if isinstance(limit, str) else None
    if percent is None:
        raise InvalidRolloutError(option="guards", reason=f"of {name!r} must be like '+20%', not {limit!r}")
    factor = 1 + float(percent[1]) / 100
    if latency is not None:
        return RolloutGuard(name, limit.strip(), "latency", factor=factor, quantile=int(latency[1]) / 100)
    return RolloutGuard(name, limit.strip(), name, factor=factor)
