"""Prediction-powered inference: few labels of people correct the many scores of a judge."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.evaluation.statistics.distributions import t_quantile
from kantan_agents.lab.evaluation.statistics.independent_units import Floats
from kantan_agents.lab.evaluation.statistics.intervals import Interval, check_level

_FEWEST_LABELS: Final = 4
_FEWEST_ERRORS: Final = 2.0
_NOTHING: Final = 1e-12
_ROUNDING: Final = 1e-9


class CorrectedMean(NamedTuple):
    """A mean on the people's scale.

    Attributes:
        mean: The estimate.
        interval: Its interval; None if it cannot be known: for fewer than 4 labels, or if nothing varies.
        standard_error: Its standard error; None if it cannot be known.
        judge_weight: How much the judge's scores count, lambda in the paper: 0 for a judge without use, and
            then only the labels do.
        labels: How many cases have a label.
        cases: How many cases there are.
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
    *,
    level: float = 0.95,
) -> CorrectedMean:
    """Return the mean that people would have given to all cases, from the labels of a few.

    The judge's scores of all cases give a mean, and the labels show by how much it is wrong. How much the
    judge counts is chosen from the labels. To allow for this choice, the standard error is a jackknife that
    chooses anew without each label, and the interval allows for skewness, as `skew_corrected` does. Among few
    labels, a good judge may show none of its errors by luck. The labels therefore count as if the judge were
    wrong by one step in at least two of them, where a step is the distance between neighbouring labels.

    With a useless judge, the interval is 2 to 6 % wider than that of 50 or 30 labels alone.

    The cases to label must have been drawn at random. Labels that somebody picked say nothing about the
    others.

    Args:
        labels: Shape (cases,): the people's labels; NaN for cases without one.
        scores: Shape (cases,): the judge's scores of all cases.
        probabilities: Shape (cases,): with which probability each case was drawn for labelling, above 0 and
            at most 1; None if it was the same for all. Those of cases without a label do not matter.
        level: The confidence level.

    Raises:
        ValueError: Shapes differ, there is no label, a score is not finite, or a probability is out of range.

    Source: Angelopoulos, Duchi and Zrnic, PPI++: Efficient prediction-powered inference (2023),
    arXiv:2311.01453, the mean with power tuning. It is the regression estimator of double sampling, Cochran,
    Sampling Techniques (3rd edition, 1977), section 12.6. For unequal probabilities Särndal, Swensson and
    Wretman, Model Assisted Survey Sampling (1992), section 6.4. The jackknife and the allowances for few
    labels are additions; ``benchmarks/statistics.py`` measures the coverage.
    """
    check_level(level)
    given, judged = _checked(labels, scores)
    labelled = ~np.isnan(given)
    shares = _shares(probabilities, labelled)
    y, f = given[labelled], judged[labelled]
    centred = judged - judged.mean()
    weight = _slope(y, f, shares)
    mean = float(shares @ y - weight * (shares @ f - judged.mean()))
    count, cases = len(y), len(given)
    if count < _FEWEST_LABELS:
        return CorrectedMean(mean, None, None, weight, count, cases)
    # What each case contributes to the error of the estimate.
    of_all = weight * centred / cases
    contributions = of_all.copy()
    contributions[labelled] += _slope_contributions(y, f - judged.mean(), shares)
    fitted = 1 if np.ptp(f) == 0.0 else 2  # the mean, and how much the judge counts
    of_labels = count / (count - fitted) * float(np.sum(contributions[labelled] ** 2))
    least = _FEWEST_ERRORS * _step(y) ** 2 * float(shares @ shares) / count
    variance = max(of_labels, least) + float(np.sum(contributions[~labelled] ** 2))
    if variance <= (_NOTHING * max(1.0, float(np.abs(y).max()))) ** 2:
        return CorrectedMean(mean, None, None, weight, count, cases)
    contributions[labelled] -= contributions[labelled].mean()
    error = float(np.sqrt(variance))
    skewness = float(np.sum((contributions / error) ** 3))
    # Labels of unequal shares count as fewer.
    freedom = max(1, math.floor(1.0 / float(shares @ shares) - fitted + _ROUNDING))
    interval = skew_corrected(mean, error, skewness, freedom, level)
    return CorrectedMean(mean, interval, error, weight, count, cases)


def corrected_difference(
    labels_a: npt.ArrayLike,
    labels_b: npt.ArrayLike,
    scores_a: npt.ArrayLike,
    scores_b: npt.ArrayLike,
    probabilities: npt.ArrayLike | None = None,
    *,
    level: float = 0.95,
) -> CorrectedMean:
    """Return the mean difference of b to a that people would have given on all cases.

    It is `corrected_mean` of the differences in each case. A case counts as labelled if people have labelled
    both answers, so ``probabilities`` are those of both.

    Args:
        labels_a: Shape (cases,): the people's labels of a; NaN for cases without one.
        labels_b: The same for b, in the same order.
        scores_a: Shape (cases,): the judge's scores of a.
        scores_b: The judge's scores of b.
        probabilities: As for `corrected_mean`.
        level: The confidence level.

    Raises:
        ValueError: As for `corrected_mean`.

    Source: as for `corrected_mean`.
    """
    pairs = [np.asarray(one, dtype=np.float64) for one in (labels_a, labels_b, scores_a, scores_b)]
    if len({one.shape for one in pairs}) != 1:
        raise ValueError(f"labels and scores must have the same shape: {[one.shape for one in pairs]}")
    return corrected_mean(pairs[1] - pairs[0], pairs[3] - pairs[2], probabilities, level=level)


def _checked(labels: npt.ArrayLike, scores: npt.ArrayLike) -> tuple[Floats, Floats]:
    given, judged = np.asarray(labels, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if given.ndim != 1 or given.shape != judged.shape:
        raise ValueError(f"labels and scores must be lists of the same length: {given.shape}, {judged.shape}")
    if not np.isfinite(judged).all() or np.isinf(given).any():
        raise ValueError("labels must be finite or NaN, and scores must be finite")
    if np.isnan(given).all():
        raise ValueError("no case has a label")
    return given, judged


def _shares(probabilities: npt.ArrayLike | None, labelled: npt.NDArray[np.bool_]) -> Floats:
    """Return the share of each label in the mean, in inverse proportion to its probability."""
    if probabilities is None:
        return np.full(int(labelled.sum()), 1.0 / labelled.sum())
    given = np.asarray(probabilities, dtype=np.float64)
    if given.shape != labelled.shape:
        raise ValueError(f"there are probabilities of shape {given.shape} for {labelled.shape} cases")
    of_labels = given[labelled]
    if not ((of_labels > 0.0) & (of_labels <= 1.0)).all():
        raise ValueError("probabilities of cases with a label must be above 0 and at most 1")
    result: Floats = (1.0 / of_labels) / np.sum(1.0 / of_labels)
    return result


def _step(y: Floats) -> float:
    """Return the average distance of neighbouring values; 0 if all are equal."""
    distances = np.diff(np.sort(y))
    extent = float(distances.sum())
    return extent / max(1, int(np.count_nonzero(distances > _ROUNDING * extent)))


def _slope(y: Floats, f: Floats, shares: Floats) -> float:
    """Return the slope of labels over scores, with which the scores explain most of the labels.

    Args:
        y: Shape (labels,): the labels.
        f: Shape (labels,): the scores of the same cases.
        shares: Shape (labels,): the share of each label in the mean; they sum to 1.

    Returns:
        The slope; 0 if the scores do not vary.
    """
    y, f = y - shares @ y, f - shares @ f
    return float(_ratio(shares @ (f * y), np.asarray(shares @ f**2), f))


def _slope_contributions(y: Floats, f: Floats, shares: Floats) -> Floats:
    """Return what each label contributes to the error of the corrected mean.

    The sum of their squares is its jackknife variance: the mean is estimated without each label in turn, with
    a slope of its own.

    Args:
        y: Shape (labels,): the labels.
        f: Shape (labels,): the scores of the same cases, relative to the mean score of all cases.
        shares: Shape (labels,): the share of each label in the mean; they sum to 1.

    Returns:
        Shape (labels,): contributions that sum to 0.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 11.
    """
    without = 1.0 - shares
    y_mean, f_mean = (shares @ y - shares * y) / without, (shares @ f - shares * f) / without
    estimates = y_mean - _slopes_without(y, f, shares) * f_mean
    result: Floats = -without * (estimates - (without @ estimates) / without.sum())
    return result


def _slopes_without(y: Floats, f: Floats, shares: Floats) -> Floats:
    """Return the slope without each label in turn."""
    y, f = y - shares @ y, f - shares @ f
    taken = shares / (1.0 - shares)
    return _ratio(shares @ (f * y) - taken * f * y, shares @ f**2 - taken * f**2, f)


def _ratio(product: Floats, square: Floats, f: Floats) -> Floats:
    """Return the slope; 0 if the scores do not vary."""
    varies = square > _NOTHING * max(float(np.max(f**2)), _NOTHING)
    result: Floats = np.where(varies, product / np.where(varies, square, 1.0), 0.0)
    return result


def skew_corrected(estimate: float, error: float, skewness: float, freedom: float, level: float) -> Interval:
    """Return the interval of an estimate, each bound by Hall's transformation or by Student's t.

    The bound that is farther from the estimate is taken: Hall's is right for skewed data and too short for
    heavy tails, and t the other way around.

    Args:
        estimate: The estimate.
        error: Its standard error.
        skewness: Skewness of the estimate itself, which is that of the data by the root of their number.
        freedom: Degrees of freedom of the standard error.
        level: The confidence level.

    Source: Hall, On the removal of skewness by transformation, Journal of the Royal Statistical Society B 54
    (1992), section 2, the second transformation.
    """
    t = t_quantile((1.0 + level) / 2.0, freedom)
    return Interval(
        estimate - max(t, _untransformed(t, skewness)) * error,
        estimate - min(-t, _untransformed(-t, skewness)) * error,
    )


def _untransformed(value: float, skewness: float) -> float:
    """Return the studentised error whose transformed value is given."""
    if abs(skewness) < _ROUNDING:
        return value
    cube = 1.0 + skewness * (value - skewness / 6.0)
    return 3.0 / skewness * (math.copysign(abs(cube) ** (1.0 / 3.0), cube) - 1.0)
