"""Trends of a judge's error."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.evaluation.statistics.block_orders import Blocks, Clusters, blocks_of
from kantan_agents.lab.evaluation.statistics.independent_units import Floats

_MOST_PAIRED: Final = 1_000  # of more cases, a random part of the pairs gives the slope
_PAIRS: Final = 500_000
_AT_ONCE: Final = 1_000_000
_FEWEST: Final = 3
_ROUNDING: Final = 1e-9


class Trend(NamedTuple):
    """The trend of a judge's error.

    Attributes:
        slope: Rise of judge minus reviewer for each step of 1 in length or time, by Theil and Sen; None if
            unknown.
        correlation: Spearman's rank correlation, from -1 to 1. None for fewer than 3 cases, or if either side
            does not vary.
        p: The two-sided p of the hypothesis that there is no trend.
        cases: Number of cases.
        least_p: The smallest p that any order of these errors could have. If it is above 5 %, no trend could
            have been found, however strong.
    """

    slope: float | None
    correlation: float | None
    p: float
    cases: int
    least_p: float


def length_bias(
    judge: npt.ArrayLike,
    person: npt.ArrayLike,
    lengths: npt.ArrayLike,
    clusters: Clusters = None,
    inside: Clusters = None,
    *,
    resamples: int = 10_000,
    seed: int = 0,
) -> Trend:
    """Test whether a judge overrates long answers: whether judge minus reviewer rises with the length.

    Human labels are subtracted because long answers may well be better. Both must have the same scale: a
    judge that uses only a part of it seems biased wherever quality and length correlate.

    p compares the rank correlation with random orders. Clusters of the same shape swap as a whole, and cases
    swap inside the input that they repeat, so the test is exact for any number of clusters.

    Args:
        judge: Shape (cases,): the judge's scores.
        person: Human labels, on the same scale and in the same order.
        lengths: Length of each output, in any measure.
        clusters: As for `paired_difference`.
        inside: What each case repeats inside its cluster, such as the input of several outputs; None if
            nothing.
        resamples: Number of random orders.
        seed: The same seed gives the same p.

    Raises:
        ValueError: The shapes differ, a value is not finite, or ``resamples`` is below 1.

    Source: Dubois et al., Length-controlled AlpacaEval (2024), arXiv:2404.04475, for the bias; Theil (1950)
    and Sen, Estimates of the regression coefficient based on Kendall's tau, Journal of the American
    Statistical Association 63 (1968), for the slope; for the p as for `sign_flip_p`, and for the orders with
    clusters Winkler et al., Multi-level block permutation, NeuroImage 123 (2015).
    """
    return _trend(judge, person, lengths, (clusters, inside), resamples, seed)


def drift(
    judge: npt.ArrayLike,
    person: npt.ArrayLike,
    times: npt.ArrayLike,
    clusters: Clusters = None,
    inside: Clusters = None,
    *,
    resamples: int = 10_000,
    seed: int = 0,
) -> Trend:
    """Test whether a judge has become more lenient or stricter over time, relative to reviewers.

    Args:
        judge: Shape (cases,): the judge's scores.
        person: Human labels, on the same scale and in the same order.
        times: Time of each score, as a number in any measure, such as days.
        clusters: As for `length_bias`.
        inside: As for `length_bias`.
        resamples: Number of random orders.
        seed: The same seed gives the same p.

    Raises:
        ValueError: As for `length_bias`.

    Source: as for `length_bias`.
    """
    return _trend(judge, person, times, (clusters, inside), resamples, seed)


def _trend(
    judge: npt.ArrayLike,
    person: npt.ArrayLike,
    along: npt.ArrayLike,
    clusters: tuple[Clusters, Clusters],
    resamples: int,
    seed: int,
) -> Trend:
    judged, given, x = (np.asarray(one, dtype=np.float64) for one in (judge, person, along))
    if judged.ndim != 1 or not judged.shape == given.shape == x.shape:
        raise ValueError(f"lists of the same length are needed: {judged.shape}, {given.shape}, {x.shape}")
    y = judged - given
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("all values must be finite numbers")
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, not {resamples}")
    blocks = blocks_of(x, y, *clusters)
    x, y = x[blocks.order], y[blocks.order]
    if len(x) < _FEWEST or np.ptp(x) == 0.0:
        return Trend(None, None, 1.0, len(x), 1.0)
    random = np.random.default_rng(seed)
    slope = _slope(x, y, random)
    ranks_x, ranks_y = _centred_ranks(x), _centred_ranks(y)
    scale = float(np.sqrt((ranks_x @ ranks_x) * (ranks_y @ ranks_y)))
    if scale == 0.0:
        return Trend(slope, None, 1.0, len(x), 1.0)
    observed = float(ranks_x @ ranks_y) / scale
    found = np.abs(_shuffled(ranks_x, ranks_y, blocks, resamples, random)) / scale
    extreme, most = (
        (1 + int(np.count_nonzero(found >= least - _ROUNDING))) / (1 + resamples)
        for least in (abs(observed), max(abs(observed), float(found.max())))
    )
    return Trend(slope, observed, extreme, len(x), most)


def _slope(x: Floats, y: Floats, random: np.random.Generator) -> float:
    if len(x) <= _MOST_PAIRED:
        first, second = np.triu_indices(len(x), 1)
    else:
        first, second = random.integers(len(x), size=(2, _PAIRS))
    distance = x[second] - x[first]
    apart = distance != 0.0
    return float(np.median((y[second] - y[first])[apart] / distance[apart]))


def _centred_ranks(values: Floats) -> Floats:
    """Equal values have the same rank."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2.0)[places]
    ranks -= ranks.mean()
    return ranks


def _shuffled(x: Floats, y: Floats, blocks: Blocks, resamples: int, random: np.random.Generator) -> Floats:
    at_once = max(1, _AT_ONCE // len(x))
    found = [
        y[blocks.random_orders(random, min(at_once, resamples - start))] @ x
        for start in range(0, resamples, at_once)
    ]
    return np.concatenate(found)
