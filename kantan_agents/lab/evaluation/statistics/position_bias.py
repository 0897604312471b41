"""Position bias of a pairwise judge."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.evaluation.statistics.distributions import fair_coin_p
from kantan_agents.lab.evaluation.statistics.independent_units import units_of
from kantan_agents.lab.evaluation.statistics.sign_flip import sign_flip_p


class PositionBias(NamedTuple):
    """The position that a judge prefers.

    Attributes:
        first: Number of pairs in which it preferred the answer that it saw first, whichever that was.
        second: Number of pairs in which it preferred the answer that it saw second.
        consistent: Number of pairs in which the order made no difference.
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
    """Test whether a judge that compared each pair in both orders prefers a position.

    A judge of content names the other position when the order changes. The sign test compares how often it
    does not, for both positions. Pairs of one cluster change sides together, as in `sign_flip_p`.

    Args:
        one_order: Shape (pairs,): the choice when a came first: 1 for the first, -1 for the second, 0 for a
            tie.
        other_order: The choice when b came first, for the same pairs.
        clusters: The group of each pair, such as its case; None for an independent pair.

    Raises:
        ValueError: The shapes differ, or a value is not 1, 0 or -1.

    Source: Zheng et al. (2023), the paper on MT-Bench and Chatbot Arena, arXiv:2306.05685, section 3.3; sign
    test: Conover, Practical Nonparametric Statistics (3rd edition, 1999), section 3.4.
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
