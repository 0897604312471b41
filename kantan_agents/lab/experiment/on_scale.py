"""``on_scale``: a score on the scale of its metric."""

from __future__ import annotations

from typing import Final

_ROUNDING: Final = 1e-6


def on_scale(value: float, scale: tuple[float, float]) -> float | None:
    """Return a score on its scale; None for one outside, except by rounding, such as 1.0000001."""
    low, high = scale
    slack = _ROUNDING * (high - low)
    return min(high, max(low, value)) if low - slack <= value <= high + slack else None
