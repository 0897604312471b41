"""Quantiles of what has been seen so far."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from kantan_agents.rollout.evidence.betting import Flags, Floats

_GROWTH: Final = 1.1


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
