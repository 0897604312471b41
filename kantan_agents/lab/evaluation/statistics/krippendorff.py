"""Krippendorff's alpha: the agreement of several raters, not all of whom have rated everything."""

from __future__ import annotations

from typing import Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.evaluation.statistics.agreement import Agreement, agreement_interval
from kantan_agents.lab.evaluation.statistics.intervals import check_level
from kantan_agents.lab.evaluation.statistics.units import Floats

Scale = Literal["nominal", "ordinal", "interval"]
"""Categories without an order, grades, or numbers whose distances count."""

_DIMENSIONS: Final = 2  # raters and items
_AT_ONCE: Final = 200


def krippendorff_alpha(
    ratings: npt.ArrayLike,
    scale: Scale = "nominal",
    *,
    level: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
) -> Agreement:
    """Return the agreement of several raters beyond chance.

    It is for any number of raters, for missing ratings and for grades: with ``"ordinal"`` and ``"interval"``,
    a near miss counts less than a far one.

    Args:
        ratings: Shape (raters, items): numbers, also for categories; NaN where a rating is missing. Items
            with fewer than two ratings do not count.
        scale: What the numbers mean.
        level: The confidence level.
        resamples: How many bootstrap resamples of the items to draw.
        seed: The same seed gives the same interval.

    Raises:
        ValueError: ``ratings`` has another shape or contains infinity, or an option is out of range.

    Source: Krippendorff, Content Analysis (3rd edition, 2013), section 12.3; Hayes and Krippendorff,
    Answering the call for a standard reliability measure for coding data, Communication Methods and Measures
    1 (2007). The bootstrap draws whole items, not single pairs of ratings as theirs does, since ratings of
    one item depend on one another.
    """
    check_level(level)
    given = np.asarray(ratings, dtype=np.float64)
    if given.ndim != _DIMENSIONS or np.isinf(given).any():
        raise ValueError(f"ratings must be finite numbers or NaN of shape (raters, items), not {given.shape}")
    if scale not in get_args(Scale) or resamples < 1:
        raise ValueError(
            f"scale must be one of {get_args(Scale)} and resamples at least 1: {scale!r}, {resamples}"
        )
    patterns, frequencies, values = _patterns(given)
    items = int(frequencies.sum())
    if not items:
        return Agreement(None, None, 0)
    value = float(_alpha(frequencies[None].astype(np.float64), patterns, values, scale)[0])
    if np.isnan(value):
        return Agreement(None, None, items)
    random = np.random.default_rng(seed)
    found = []
    for start in range(0, resamples, _AT_ONCE):
        few = min(_AT_ONCE, resamples - start)
        drawn = random.multinomial(items, frequencies / items, size=few).astype(np.float64)
        found.append(_alpha(drawn, patterns, values, scale))
    return Agreement(value, agreement_interval(value, np.concatenate(found), items, level), items)


def _patterns(ratings: Floats) -> tuple[Floats, npt.NDArray[np.int64], Floats]:
    """Return how often each value was given in each kind of item, how many are of it, and the values."""
    values = np.unique(ratings[~np.isnan(ratings)])
    counts = (ratings[:, :, None] == values).sum(axis=0)
    counts = counts[counts.sum(axis=1) > 1]
    if not len(counts):
        return np.zeros((0, len(values))), np.zeros(0, dtype=np.int64), values
    patterns, frequencies = np.unique(counts, axis=0, return_counts=True)
    return patterns.astype(np.float64), frequencies, values


def _alpha(drawn: Floats, patterns: Floats, values: Floats, scale: Scale) -> Floats:
    """Return alpha for each resample.

    Args:
        drawn: Shape (resamples, patterns): how many items of each pattern.
        patterns: Shape (patterns, values): how often each value was given.
        values: The values in ascending order.
        scale: What they mean.
    """
    ratings = patterns.sum(axis=1)
    totals = drawn @ patterns
    total = totals.sum(axis=1)
    if scale == "nominal":
        within = drawn @ ((ratings**2 - (patterns**2).sum(axis=1)) / (ratings - 1.0))
        among = total**2 - (totals**2).sum(axis=1)
    else:
        # Squared distances of all pairs of n values sum to 2 (n * sum of squares - square of sum).
        places = _places(totals, values, scale)
        places = places - (totals * places).sum(axis=1, keepdims=True) / total[:, None]
        spread = ratings * (places**2 @ patterns.T) - (places @ patterns.T) ** 2
        within = 2.0 * (drawn * spread) @ (1.0 / (ratings - 1.0))
        among = 2.0 * total * (totals * places**2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        result: Floats = np.where(among > 0.0, 1.0 - (total - 1.0) * within / among, np.nan)
    return result


def _places(totals: Floats, values: Floats, scale: Scale) -> Floats:
    """Return where each value lies on the scale: by itself, or by its mean rank among all ratings."""
    if scale == "interval":
        return np.broadcast_to(values, totals.shape)
    result: Floats = np.cumsum(totals, axis=1) - totals / 2.0
    return result
