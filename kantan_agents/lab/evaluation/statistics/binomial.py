"""The exact two-sided test of a fair coin, which the sign test and McNemar's test share."""

from __future__ import annotations

import math

import numpy as np


def fair_coin_p(heads: int, tails: int) -> float:
    """Return the two-sided p of these counts if both sides are equally likely; 1.0 without any.

    Args:
        heads: How often one side was seen.
        tails: How often the other side was seen.

    Raises:
        ValueError: A count is negative.

    Source: Conover, Practical Nonparametric Statistics (3rd edition, 1999), section 3.4.
    """
    if heads < 0 or tails < 0:
        raise ValueError(f"counts must not be negative: {heads}, {tails}")
    total, fewer = heads + tails, min(heads, tails)
    if total == 0:
        return 1.0
    # log of C(n, k) for k = 0..fewer, each from the one before.
    k = np.arange(1, fewer + 1, dtype=np.float64)
    logs = np.concatenate([[0.0], np.cumsum(np.log((total - k + 1) / k))]) - total * math.log(2.0)
    return min(1.0, 2.0 * math.fsum(np.exp(logs)))
