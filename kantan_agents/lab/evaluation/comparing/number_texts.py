"""Formats scores, differences and p values."""

from __future__ import annotations

import math
from typing import Final

_SMALL: Final = 1e-4
_SMALLEST_P: Final = 0.0005


def number_text(value: float, digits: int) -> str:
    """Return a number with significant digits; digits before the decimal point remain."""
    if not value or abs(value) < _SMALL:
        return f"{value:.{digits}g}" if value else "0"
    decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0)
    shown = f"{value:,.{decimals}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def score_text(value: float | None) -> str:
    """Return a score; "" for None."""
    return "" if value is None else number_text(value, 3)


def difference_text(value: float | None) -> str:
    """Return a difference with its sign; "" for None."""
    if value is None:
        return ""
    return f"{'+' if value > 0 else ''}{number_text(value, 2)}"


def sentence(clause: str) -> str:
    """Return a clause as a sentence."""
    return f"{clause[:1].upper()}{clause[1:]}."


def interval_text(low: float | None, high: float | None) -> str:
    """Return an interval; "" if it is unknown."""
    return "" if low is None or high is None else f"{difference_text(low)} to {difference_text(high)}"


def p_text(p: float | None) -> str:
    """Return a p value; "" for None."""
    if p is None:
        return ""
    return "<0.001" if p < _SMALLEST_P else f"{p:.3f}"
