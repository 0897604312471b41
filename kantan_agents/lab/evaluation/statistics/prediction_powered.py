"""Prediction-powered inference: a few human labels correct the many scores of a judge."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.evaluation.statistics.independent_units import Floats, numbers_of
from kantan_agents.lab.evaluation.statistics.intervals import Interval, check_level, exact_bounds
from kantan_agents.lab.evaluation.statistics.judge_slope import slope_contributions, slope_of
from kantan_agents.lab.evaluation.statistics.label_shares import checked_labels, shares_of
from kantan_agents.lab.evaluation.statistics.mcnemar import is_binary
from kantan_agents.lab.evaluation.statistics.proportion import freedom_factor, interval_of_units
from kantan_agents.lab.evaluation.statistics.skewness import skew_corrected

_FEWEST_LABELS: Final = 4
_FEWEST_UNBOUNDED: Final = 30  # fewer do not show how extreme the others may be
_FEWEST_ERRORS: Final = 3.0
_MOST_WORTH: Final = 1e6  # quantiles of more are slow, and the interval is short enough
_NOTHING: Final = 1e-12
_ROUNDING: Final = 1e-9

Bounds = tuple[float, float] | None
"""The lowest and the highest possible label."""


class CorrectedMean(NamedTuple):
    """A mean on the reviewers' scale.

    Attributes:
        mean: The estimate.
        interval: Its interval, inside the bounds of the labels if these are known. None without bounds for
            fewer than 30 labels, or if nothing varies.
        standard_error: Its standard error; None for fewer than 4 labels, or if nothing varies.
        judge_weight: The weight of the judge's scores, lambda in the paper; 0 if they do not make the labels
            more precise, and then only the labels count.
        labels: Number of cases with a label.
        cases: Number of cases.
    """

    mean: float
    interval: Interval | None
    standard_error: float | None
    judge_weight: float
    labels: int
    cases: int


def corrected_mean(
    labels: npt.ArrayLike,
    scores: npt.ArrayLike,
    probabilities: npt.ArrayLike | None = None,
    clusters: Sequence[Hashable | None] | None = None,
    *,
    bounds: Bounds = None,
    level: float = 0.95,
) -> CorrectedMean:
    """Estimate the mean label of all cases from the labels of a few and a judge's scores of all.

    The labels show the error of the scores' mean, and choose the weight of the judge. To allow for this
    choice, the standard error is a jackknife that chooses anew without each label. By luck, a few labels may
    show no error of a good judge, so they count as if the judge were wrong by one step, the distance between
    adjacent labels, in at least three. The jackknife omits whole clusters, and clusters of unequal weight
    count as fewer.

    The interval is never wider than without the judge. If the judge does not shorten it, only the labels
    count, and ``judge_weight`` is 0. With known bounds, the interval is Clopper and Pearson's for the number
    of labels with the same standard error: it stays inside the bounds and allows for rare failures. Otherwise
    it allows for skewness, as `skew_corrected` does.

    Sample the cases to label at random: labels of chosen cases do not represent the others.

    Args:
        labels: Shape (cases,): human labels; NaN for cases without one.
        scores: Shape (cases,): the judge's scores of all cases.
        probabilities: Shape (cases,): the probability with which each case was sampled for labeling, above 0
            and at most 1; None if equal. Values of cases without a label are ignored.
        clusters: As for `paired_difference`.
        bounds: The lowest and the highest possible label. By default 0 and 1 if all labels are 0 or 1,
            otherwise unknown.
        level: Confidence level.

    Raises:
        ValueError: Shapes differ, there is no label, a score is not finite, a probability is out of range, or
            the mean of the labels is out of bounds.

    Source: Angelopoulos, Duchi and Zrnic, PPI++: Efficient prediction-powered inference (2023),
    arXiv:2311.01453, the mean with power tuning, which is the regression estimator of double sampling,
    Cochran, Sampling Techniques (3rd edition, 1977), section 12.6. For unequal probabilities Särndal,
    Swensson and Wretman, Model Assisted Survey Sampling (1992), section 6.4. For the interval as for
    `proportion`. The jackknife and the allowances for few labels are additions; ``benchmarks/statistics.py``
    measures the coverage.
    """
    given = np.asarray(labels, dtype=np.float64)
    is_yes_no = bounds is None and is_binary(given[~np.isnan(given)])
    return _corrected(labels, scores, probabilities, clusters, (0.0, 1.0) if is_yes_no else bounds, level)


def corrected_difference(
    labels_a: npt.ArrayLike,
    labels_b: npt.ArrayLike,
    scores_a: npt.ArrayLike,
    scores_b: npt.ArrayLike,
    probabilities: npt.ArrayLike | None = None,
    clusters: Sequence[Hashable | None] | None = None,
    *,
    bounds: Bounds = None,
    level: float = 0.95,
) -> CorrectedMean:
    """Estimate the mean difference of labels of b and a on all cases.

    It is `corrected_mean` of the differences in each case. A case counts as labeled if both answers have
    labels.

    Args:
        labels_a: Shape (cases,): human labels of a; NaN for cases without one.
        labels_b: The same for b, in the same order.
        scores_a: Shape (cases,): the judge's scores of a.
        scores_b: The judge's scores of b.
        probabilities: The probability that both answers of a case were sampled, as for `corrected_mean`.
        clusters: As for `corrected_mean`.
        bounds: The lowest and the highest possible label, as for `corrected_mean`.
        level: Confidence level.

    Raises:
        ValueError: As for `corrected_mean`.

    Source: as for `corrected_mean`.
    """
    pairs = [np.asarray(one, dtype=np.float64) for one in (labels_a, labels_b, scores_a, scores_b)]
    if len({one.shape for one in pairs}) != 1:
        raise ValueError(f"labels and scores must have the same shape: {[one.shape for one in pairs]}")
    known = np.concatenate([one[~np.isnan(one)] for one in pairs[:2]])
    low, high = bounds or ((0.0, 1.0) if is_binary(known) else (0.0, 0.0))
    width = None if low == high else (low - high, high - low)
    return _corrected(pairs[1] - pairs[0], pairs[3] - pairs[2], probabilities, clusters, width, level)


class _Estimate(NamedTuple):
    mean: float
    weight: float
    error: float | None
    skewness: float
    freedom: int
    units: int


def _corrected(
    labels: npt.ArrayLike,
    scores: npt.ArrayLike,
    probabilities: npt.ArrayLike | None,
    clusters: Sequence[Hashable | None] | None,
    bounds: Bounds,
    level: float,
) -> CorrectedMean:
    check_level(level)
    given, judged = checked_labels(labels, scores)
    labelled = ~np.isnan(given)
    shares = shares_of(probabilities, labelled)
    units = numbers_of(clusters, len(given))
    alone = _estimate(given, np.zeros_like(judged), shares, units)
    helped = _estimate(given, judged, shares, units)
    if bounds is None:
        of_labels, of_both = _unbounded(alone, level), _unbounded(helped, level)
    else:
        low, high = bounds
        if not low < high or not low - _ROUNDING <= alone.mean <= high + _ROUNDING:
            raise ValueError(f"bounds must be the lowest and the highest possible label, not {bounds}")
        weights = shares * len(shares)
        passed = weights * (given[labelled] - low) / (high - low)
        known = np.unique(units[labelled], return_inverse=True)[1]
        totals, sizes = (np.bincount(known, one).astype(np.float64) for one in (passed, weights))
        found = interval_of_units(totals, sizes, level)[0]
        of_labels = None if found is None else _scaled(found, low, high)
        of_both = _bounded(helped, low, high, level)
    is_helped = of_both is not None and (of_labels is None or _width(of_both) < _width(of_labels))
    one, interval = (helped, of_both) if is_helped else (alone, of_labels)
    mean = one.mean if bounds is None else min(max(one.mean, bounds[0]), bounds[1])  # beyond by rounding only
    return CorrectedMean(mean, interval, one.error, one.weight, len(shares), len(given))


def _estimate(given: Floats, judged: Floats, shares: Floats, units: npt.NDArray[np.intp]) -> _Estimate:
    labelled = ~np.isnan(given)
    y, f = given[labelled], judged[labelled]
    weight = slope_of(y, f, shares)
    mean = float(shares @ y - weight * (shares @ f - judged.mean()))
    known, of_label = np.unique(units[labelled], return_inverse=True)
    count, squares = len(known), float(np.sum(np.bincount(of_label, shares) ** 2))
    fitted = 1 if np.ptp(f) == 0.0 else 2  # the mean, and the weight of the judge
    # Sampling units of unequal shares count as fewer.
    freedom = max(1, math.floor(1.0 / squares - fitted + _ROUNDING))
    if count < _FEWEST_LABELS:
        return _Estimate(mean, weight, None, 0.0, freedom, count)
    # The contribution of each sampling unit to the error of the estimate.
    of_judge = weight * (judged - judged.mean()) / len(given)
    contributions = np.bincount(units, of_judge).astype(np.float64)
    contributions[known] += slope_contributions(y, f - judged.mean(), shares, of_label)
    is_known = np.isin(np.arange(len(contributions)), known)
    of_labels = count / (count - fitted) * float(np.sum(contributions[is_known] ** 2))
    least = _FEWEST_ERRORS * _step(y) ** 2 * squares / count
    variance = max(of_labels, least) + float(np.sum(contributions[~is_known] ** 2))
    if variance <= (_NOTHING * max(1.0, float(np.abs(y).max()))) ** 2:
        return _Estimate(mean, weight, None, 0.0, freedom, count)
    contributions[is_known] -= contributions[is_known].mean()
    error = math.sqrt(variance)
    return _Estimate(mean, weight, error, float(np.sum((contributions / error) ** 3)), freedom, count)


def _unbounded(one: _Estimate, level: float) -> Interval | None:
    if one.error is None or one.units < _FEWEST_UNBOUNDED:
        return None
    return skew_corrected(one.mean, one.error, one.skewness, one.freedom, level)


def _bounded(one: _Estimate, low: float, high: float, level: float) -> Interval | None:
    """Return None outside the scale."""
    rate = (one.mean - low) / (high - low)
    if one.error is None or not 0.0 < rate < 1.0:
        return None
    worth = rate * (1.0 - rate) / (one.error / (high - low)) ** 2
    worth = min(worth * freedom_factor(one.units - 1, one.freedom, level), _MOST_WORTH)
    return _scaled(exact_bounds(rate * worth, worth, level), low, high)


def _scaled(interval: Interval, low: float, high: float) -> Interval:
    return Interval(*(low + (high - low) * bound for bound in interval))


def _width(interval: Interval) -> float:
    return interval.high - interval.low


def _step(y: Floats) -> float:
    """Return the average distance of adjacent values."""
    distances = np.diff(np.sort(y))
    extent = float(distances.sum())
    return extent / max(1, int(np.count_nonzero(distances > _ROUNDING * extent)))
