"""Means and quantiles of what has been seen so far, so that bets depend on nothing later."""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]

_GROWTH: Final = 1.1


def running_mean(values: Floats, start: float) -> Floats:
    """Return the mean of all earlier values at each place, where ``start`` counts as one more of them."""
    before = np.concatenate(([0.0], np.cumsum(values)[:-1])) if len(values) else values
    result: Floats = (start + before) / (1.0 + np.arange(len(values)))
    return result


def running_quantile(values: Floats, counts: Flags, quantile: float, fewest: int) -> Floats:
    """Return at each place a quantile of the earlier values that count; NaN until enough are known.

    It is computed anew whenever a tenth more values are known. That keeps the time linear, and when it
    happens depends on earlier observations only.

    Args:
        values: Shape (observations,).
        counts: Shape (observations,): whose values count.
        quantile: Between 0 and 1.
        fewest: How many values must be known.
    """
    counted = values[counts]
    times: list[int] = []
    known = fewest
    while known <= len(counted):
        times.append(known)
        known = max(known + 1, int(known * _GROWTH))
    found = [np.nan, *(float(np.quantile(counted[:time], quantile)) for time in times)]
    known_before: npt.NDArray[np.int_] = np.cumsum(counts) - counts
    result: Floats = np.array(found)[np.searchsorted(times, known_before, side="right")]
    return result
