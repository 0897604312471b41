"""How often a judge is right about what people passed, and about what they failed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.evaluation.statistics.intervals import Interval, wilson
from kantan_agents.lab.evaluation.statistics.mcnemar import is_binary


class Rate(NamedTuple):
    """A rate with its interval.

    Attributes:
        value: The rate; None without cases.
        interval: Its interval by Wilson; None without cases.
        agreed: In how many cases the judge agreed.
        cases: How many cases there are.
    """

    value: float | None
    interval: Interval | None
    agreed: int
    cases: int


class JudgeRates(NamedTuple):
    """How good a judge is.

    Attributes:
        true_positive: Of the cases that people passed, the share that the judge passed (sensitivity).
        true_negative: Of the cases that people failed, the share that the judge failed (specificity).
    """

    true_positive: Rate
    true_negative: Rate


def judge_rates(judge: npt.ArrayLike, person: npt.ArrayLike, *, level: float = 0.95) -> JudgeRates:
    """Return how often a judge agrees with people, apart for what they passed and what they failed.

    A judge that passes everything is right in 90 % of all cases if 90 % are good. Its true negative rate of 0
    shows that it is of no use.

    Args:
        judge: Shape (cases,): 1 or True where the judge passed, 0 or False where not.
        person: The people's labels, in the same order.
        level: The confidence level.

    Raises:
        ValueError: The shapes differ, a value is neither 0 nor 1, or ``level`` is out of range.

    Source: Altman and Bland, Diagnostic tests 1: sensitivity and specificity, BMJ 308 (1994).
    """
    judged, given = np.asarray(judge, dtype=np.float64), np.asarray(person, dtype=np.float64)
    if judged.ndim != 1 or judged.shape != given.shape:
        raise ValueError(f"judge and person must be lists of the same length: {judged.shape}, {given.shape}")
    if not (is_binary(judged) and is_binary(given)):
        raise ValueError("the labels of judge and person must be 0 or 1")
    return JudgeRates(*(_rate(judged[given == label] == label, level) for label in (1.0, 0.0)))


def _rate(agrees: npt.NDArray[np.bool_], level: float) -> Rate:
    agreed, cases = int(agrees.sum()), len(agrees)
    if not cases:
        return Rate(None, None, 0, 0)
    return Rate(agreed / cases, wilson(agreed, cases, level=level), agreed, cases)
