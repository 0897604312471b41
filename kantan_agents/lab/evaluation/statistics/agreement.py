"""Agreement between raters beyond chance, with a bootstrap interval."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Final, Literal, NamedTuple, get_args

import attrs
import numpy as np
import numpy.typing as npt

from kantan_agents.lab.evaluation.statistics.distributions import t_quantile
from kantan_agents.lab.evaluation.statistics.independent_units import Floats
from kantan_agents.lab.evaluation.statistics.intervals import Interval, check_level
from kantan_agents.lab.evaluation.statistics.resampling import Drawn, drawn_units

_ALMOST_ONE: Final = 0.999
_FEWEST: Final = 0.5
"""The smallest share of resamples that must have a value."""

Scale = Literal["nominal", "ordinal", "interval"]
"""Unordered categories, grades, or numbers whose distances count."""

_DIMENSIONS: Final = 2  # raters and items
_AT_ONCE: Final = 1_000_000
"""Resampled ratings in one batch."""
_ROUNDING: Final = 1e-13


class Agreement(NamedTuple):
    """Agreement between raters.

    Attributes:
        value: 1 for perfect agreement, 0 for chance agreement, below 0 for less. None if all ratings are
            equal.
        interval: Its interval; None if the resamples do not vary, for example if the raters agree on all
            items.
        items: Number of items with at least two ratings.
    """

    value: float | None
    interval: Interval | None
    items: int


def agreement_interval(value: float, resampled: Floats, units: int, level: float) -> Interval | None:
    """Return the interval of an agreement from its bootstrap standard error.

    Percentiles of the resamples are too close to the value for few items. Fisher's z scale covers better,
    because agreements near 1 vary less.

    Source: Lin, A concordance correlation coefficient to evaluate reproducibility, Biometrics 45 (1989),
    section 3, for the scale; Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 6, for
    the standard error.
    """
    defined = resampled[~np.isnan(resampled)]
    if units == 1 or len(defined) < _FEWEST * len(resampled) or np.ptp(defined) == 0.0:
        return None
    limited = min(max(value, -_ALMOST_ONE), _ALMOST_ONE)
    half = t_quantile((1.0 + level) / 2.0, units - 1) * float(np.std(defined)) / (1.0 - limited**2)
    middle = math.atanh(limited)
    return Interval(math.tanh(middle - half), math.tanh(middle + half))


def cohens_kappa(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    clusters: Sequence[Hashable | None] | None = None,
    *,
    level: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
) -> Agreement:
    """Return the agreement of two raters beyond chance, for example a judge and a reviewer.

    Two raters who both pass 90 % of all cases agree in 82 % by chance; kappa corrects for that. Categories
    have no order. For grades, use `krippendorff_alpha`.

    Args:
        first: Shape (items,): categories of the first rater: strings, numbers or booleans.
        second: Categories of the second rater, in the same order.
        clusters: The group of each item, such as its case; None for an independent item.
        level: Confidence level.
        resamples: Number of bootstrap resamples of items or whole clusters.
        seed: The same seed gives the same interval.

    Raises:
        ValueError: The shapes differ, there are no items, or an option is out of range.

    Source: Cohen, A coefficient of agreement for nominal scales, Educational and Psychological Measurement 20
    (1960).
    """
    check_level(level)
    one, two = np.asarray(first), np.asarray(second)
    if one.ndim != 1 or one.shape != two.shape or not len(one) or resamples < 1:
        raise ValueError(f"kappa needs two lists of the same length, not of {one.shape} and {two.shape}")
    categories, codes = np.unique(np.concatenate([one, two]), return_inverse=True)
    count, size = len(one), len(categories)
    cells = codes[:count] * size + codes[count:]
    table = np.bincount(cells, minlength=size * size).reshape(size, size)
    if table.T.tolist() < table.tolist():  # the result does not depend on who is first
        table, cells = table.T, codes[count:] * size + codes[:count]
    value = float(_kappa(table[None].astype(np.float64))[0])
    if np.isnan(value):
        return Agreement(None, None, count)
    drawn = drawn_units(cells, clusters, resamples, np.random.default_rng(seed))
    of_units = np.array([np.bincount(cells[few], minlength=size * size) for few in drawn.members])
    tables = (drawn.counts @ of_units).astype(np.float64).reshape(-1, size, size)
    units = int(drawn.frequencies.sum())
    return Agreement(value, agreement_interval(value, _kappa(tables), units, level), count)


def _kappa(tables: Floats) -> Floats:
    count = tables.sum(axis=(1, 2))
    observed = np.trace(tables, axis1=1, axis2=2) / count
    expected = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1) / count**2
    with np.errstate(invalid="ignore", divide="ignore"):
        result: Floats = np.where(expected < 1.0, (observed - expected) / (1.0 - expected), np.nan)
    return result


def krippendorff_alpha(
    ratings: npt.ArrayLike,
    scale: Scale = "nominal",
    clusters: Sequence[Hashable | None] | None = None,
    *,
    level: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
) -> Agreement:
    """Return the agreement of any number of raters beyond chance.

    Ratings may be missing. With ``"ordinal"`` and ``"interval"``, a near miss counts less than a far one.

    Args:
        ratings: Shape (raters, items): numbers, even for categories; NaN where a rating is missing. Items
            with fewer than two ratings do not count.
        scale: The meaning of the numbers.
        clusters: As for `cohens_kappa`.
        level: Confidence level.
        resamples: As for `cohens_kappa`.
        seed: The same seed gives the same interval.

    Raises:
        ValueError: ``ratings`` has another shape or contains infinity, or an option is out of range.

    Source: Krippendorff, Content Analysis (3rd edition, 2013), section 12.3; Hayes and Krippendorff,
    Answering the call for a standard reliability measure for coding data, Communication Methods and Measures
    1 (2007). Unlike theirs, the bootstrap samples whole items, because ratings of one item depend on one
    another.
    """
    check_level(level)
    given = np.asarray(ratings, dtype=np.float64)
    if given.ndim != _DIMENSIONS or np.isinf(given).any():
        raise ValueError(f"ratings must be finite numbers or NaN of shape (raters, items), not {given.shape}")
    if scale not in get_args(Scale) or resamples < 1:
        raise ValueError(
            f"scale must be one of {get_args(Scale)} and resamples at least 1: {scale!r}, {resamples}"
        )
    rated = np.count_nonzero(~np.isnan(given), axis=0) > 1
    items = int(rated.sum())
    if not items:
        return Agreement(None, None, 0)
    if clusters is not None and len(clusters) == len(rated):
        clusters = [cluster for cluster, is_rated in zip(clusters, rated, strict=True) if is_rated]
    by_item = np.sort(given[:, rated].T, axis=1)  # NaN last
    distinct, kinds = np.unique(np.nan_to_num(by_item, nan=np.inf), axis=0, return_inverse=True)
    drawn = drawn_units(len(distinct) - 1 - kinds.ravel(), clusters, resamples, np.random.default_rng(seed))
    rated_by = _Ratings.of(by_item, drawn)
    value = float(_alpha(drawn.frequencies[None], rated_by, scale)[0])
    if np.isnan(value):
        return Agreement(None, None, items)
    at_once = max(1, _AT_ONCE // len(rated_by.value_of))
    found = [
        _alpha(drawn.counts[start : start + at_once], rated_by, scale)
        for start in range(0, resamples, at_once)
    ]
    units = int(drawn.frequencies.sum())
    return Agreement(value, agreement_interval(value, np.concatenate(found), units, level), items)


@attrs.frozen(eq=False)
class _Ratings:
    """Ratings of the distinct sampling units.

    ``value_of`` is the index of each rating in ``values``, item by item.
    """

    values: Floats
    value_of: npt.NDArray[np.intp]
    starts: npt.NDArray[np.intp]
    sizes: npt.NDArray[np.intp]
    unit_of: npt.NDArray[np.intp]

    @classmethod
    def of(cls, by_item: Floats, drawn: Drawn) -> _Ratings:
        given = by_item[[item for few in drawn.members for item in few]]
        known = ~np.isnan(given)
        values, value_of = np.unique(given[known], return_inverse=True)
        sizes = known.sum(axis=1)
        unit_of = np.repeat(np.arange(len(drawn.members)), [len(few) for few in drawn.members])
        return cls(values, value_of, np.cumsum(sizes) - sizes, sizes, unit_of)


def _alpha(counts: npt.NDArray[np.int64], ratings: _Ratings, scale: Scale) -> Floats:
    """``counts`` has shape (resamples, sampling units)."""
    sizes, starts = ratings.sizes, ratings.starts
    weights = counts[:, ratings.unit_of].astype(np.float64)
    total = weights @ sizes
    least: Floats | float = 0.0
    if scale == "interval":
        # Squared distances of all pairs of n values sum to 2 (n * sum of squares - square of sum).
        places = (ratings.values - ratings.values.mean())[ratings.value_of]
        sums, squares = (np.add.reduceat(one, starts) for one in (places, places**2))
        within = 2.0 * weights @ ((sizes * squares - sums**2) / (sizes - 1.0))
        both = total * (weights @ squares)
        among = 2.0 * (both - (weights @ sums) ** 2)
        least = _ROUNDING * both
    else:
        rows = np.arange(len(counts))[:, None] * len(ratings.values)
        of_ratings = np.repeat(weights, sizes, axis=1)
        totals = np.bincount(
            (rows + ratings.value_of).ravel(), of_ratings.ravel(), len(counts) * len(ratings.values)
        ).reshape(len(counts), -1)
        if scale == "nominal":
            within = weights @ (_unequal_pairs(ratings) / (sizes - 1.0))
            among = total**2 - (totals**2).sum(axis=1)
        else:
            # A value lies at its mean rank among all ratings.
            ranks = np.cumsum(totals, axis=1) - totals / 2.0
            ranks -= (totals * ranks).sum(axis=1, keepdims=True) / total[:, None]
            of_values = ranks[:, ratings.value_of]
            spread = sizes * np.add.reduceat(of_values**2, starts, axis=1)
            spread -= np.add.reduceat(of_values, starts, axis=1) ** 2
            within = 2.0 * (weights * spread) @ (1.0 / (sizes - 1.0))
            among = 2.0 * total * (totals * ranks**2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        result: Floats = np.where(among > least, 1.0 - (total - 1.0) * within / among, np.nan)
    return result


def _unequal_pairs(ratings: _Ratings) -> Floats:
    """Count ordered pairs of different ratings of each item."""
    item_of = np.repeat(np.arange(len(ratings.sizes)), ratings.sizes)
    cells, counts = np.unique(item_of * len(ratings.values) + ratings.value_of, return_counts=True)
    equal = np.bincount(cells // len(ratings.values), counts**2)
    return np.asarray(ratings.sizes**2 - equal, dtype=np.float64)
