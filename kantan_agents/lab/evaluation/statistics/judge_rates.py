"""True positive and true negative rates of a judge."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.evaluation.statistics.intervals import Interval
from kantan_agents.lab.evaluation.statistics.mcnemar import is_binary
from kantan_agents.lab.evaluation.statistics.proportion import proportion


class Rate(NamedTuple):
    """A rate with its interval.

    Attributes:
        value: The rate; None without cases.
        interval: Its interval by `proportion`; None without cases, or if all are of one cluster.
        agreed: Number of cases in which the judge agreed.
        cases: Number of cases.
        units: Number of independent cases or clusters.
    """

    value: float | None
    interval: Interval | None
    agreed: int
    cases: int
    units: int


class JudgeRates(NamedTuple):
    """Quality of a judge.

    Attributes:
        true_positive: Share that the judge passed of the cases that reviewers passed (sensitivity).
        true_negative: Share that the judge failed of the cases that reviewers failed (specificity).
    """

    true_positive: Rate
    true_negative: Rate


def judge_rates(
    judge: npt.ArrayLike,
    person: npt.ArrayLike,
    clusters: Sequence[Hashable | None] | None = None,
    *,
    level: float = 0.95,
) -> JudgeRates:
    """Return how often a judge agrees with reviewers, separately for the cases that they passed and failed.

    A judge that passes everything is right in 90 % of all cases if 90 % are good. Its true negative rate of 0
    reveals it.

    Args:
        judge: Shape (cases,): 1 or True where the judge passed, 0 or False where not.
        person: The reviewers' labels, in the same order.
        clusters: As for `paired_difference`.
        level: Confidence level.

    Raises:
        ValueError: The shapes differ, a value is neither 0 nor 1, or ``level`` is out of range.

    Source: Altman and Bland, Diagnostic tests 1: sensitivity and specificity, BMJ 308 (1994).
    """
    judged, given = np.asarray(judge, dtype=np.float64), np.asarray(person, dtype=np.float64)
    if judged.ndim != 1 or judged.shape != given.shape:
        raise ValueError(f"judge and person must be lists of the same length: {judged.shape}, {given.shape}")
    if not (is_binary(judged) and is_binary(given)):
        raise ValueError("the labels of judge and person must be 0 or 1")
    named = [None] * len(judged) if clusters is None else list(clusters)
    if len(named) != len(judged):
        raise ValueError(f"there are {len(named)} clusters for {len(judged)} cases")
    return JudgeRates(*(_rate(judged == label, given == label, named, level) for label in (1.0, 0.0)))


def _rate(
    agrees: npt.NDArray[np.bool_],
    is_of_class: npt.NDArray[np.bool_],
    clusters: Sequence[Hashable | None],
    level: float,
) -> Rate:
    chosen = np.flatnonzero(is_of_class).tolist()
    if not chosen:
        return Rate(None, None, 0, 0, 0)
    found = proportion(agrees[chosen], [clusters[index] for index in chosen], level=level)
    return Rate(found.value, found.interval, int(agrees[chosen].sum()), len(chosen), found.units)
