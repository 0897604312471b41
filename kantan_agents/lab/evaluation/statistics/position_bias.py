"""Whether a pairwise judge prefers an answer for its position."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.evaluation.statistics.distributions import fair_coin_p
from kantan_agents.lab.evaluation.statistics.independent_units import units_of
from kantan_agents.lab.evaluation.statistics.sign_flip import sign_flip_p


class PositionBias(NamedTuple):
    """Which position a judge prefers.

    Attributes:
        first: In how many pairs it leaned to the answer that it saw first, whichever that was.
        second: In how many pairs it leaned to the answer that it saw second.
        consistent: In how many pairs the order made no difference.
        bias: ``(first - second) / pairs``, from -1 to 1; 0.0 without pairs.
        p: The two-sided p of the hypothesis that it prefers no position.
    """

    first: int
    second: int
    consistent: int
    bias: float
    p: float


def position_bias(
    one_order: npt.ArrayLike,
    other_order: npt.ArrayLike,
    clusters: Sequence[Hashable | None] | None = None,
) -> PositionBias:
    """Test whether a judge that was asked in both orders prefers a position.

    A judge that chooses by content changes the position it names when the order changes. Pairs in which it
    does not are counted, and the sign test compares both positions. Pairs of one cluster change sides
    together, as in `sign_flip_p`.

    Args:
        one_order: Shape (pairs,): which answer the judge chose when a came first: 1 for the first, -1 for the
            second, 0 for a tie.
        other_order: The same when b came first, in the same order of pairs.
        clusters: For each pair what it belongs to, such as its case; None for a pair of its own.

    Raises:
        ValueError: The shapes differ, or a value is not 1, 0 or -1.

    Source: Zheng et al. (2023), the paper on MT-Bench and Chatbot Arena, arXiv:2306.05685,
    section 3.3; sign test: Conover, Practical Nonparametric Statistics (3rd edition, 1999), section 3.4.
    """
    before, after = np.asarray(one_order, dtype=np.float64), np.asarray(other_order, dtype=np.float64)
    if before.ndim != 1 or before.shape != after.shape:
        raise ValueError(f"both orders must be lists of the same length: {before.shape}, {after.shape}")
    if not (np.isin(before, (-1.0, 0.0, 1.0)).all() and np.isin(after, (-1.0, 0.0, 1.0)).all()):
        raise ValueError("a choice must be 1 for the first answer, -1 for the second, or 0 for a tie")
    leaning = before + after
    first, second = int(np.count_nonzero(leaning > 0)), int(np.count_nonzero(leaning < 0))
    pairs = len(leaning)
    bias = (first - second) / pairs if pairs else 0.0
    has_clusters = bool(pairs) and units_of(leaning, clusters).count < pairs
    p = sign_flip_p(np.sign(leaning), clusters) if has_clusters else fair_coin_p(first, second)
    return PositionBias(first, second, pairs - first - second, bias, p)
