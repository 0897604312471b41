"""Holm's adjustment of several p-values."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the adjusted p-values, in the given order.

    Each metric is another chance of a false alarm. With adjusted p below 5 % as the criterion, the
    probability of any false alarm is at most 5 %, however the metrics depend on one another.

    Args:
        p_values: One p for each metric, from 0 to 1.

    Raises:
        ValueError: A value is not a probability.

    Source: Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics
    6 (1979), section 2.
    """
    for p in p_values:
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"a p-value is between 0 and 1, not {p}")
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def needed_p(others: Sequence[float], alpha: float) -> float:
    """Return the largest p with which one more test is significant by `holm` at ``alpha``."""
    left = len(others) + 1
    for p in sorted(others):
        if p > alpha / left:
            break
        left -= 1
    return alpha / left
