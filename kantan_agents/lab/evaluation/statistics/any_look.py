"""A test and an interval that hold while cases are added."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.betting.bounds import lower_bound
from kantan_agents.lab.betting.running import running_mean
from kantan_agents.lab.betting.wealth import LARGEST_STAKE, log_e_process, threshold
from kantan_agents.lab.evaluation.statistics.independent_units import Floats, checked_differences
from kantan_agents.lab.evaluation.statistics.intervals import Interval, check_level

_MEASURED: Final = 3.75
"""Excess of the best stake's log wealth over the threshold.

It pays for two directions, for stakes that were too large or too small, and for luck.
"""
_NORMAL: Final = math.sqrt(math.pi / 2.0)
"""The standard deviation of normal values, as a multiple of their mean distance from 0."""


class AnyLook(NamedTuple):
    """Result of `any_look`.

    Attributes:
        mean: The mean difference of independent cases. A conversation counts once.
        direction: 1 if p supports a higher b, -1 for a higher a, 0 for neither. It may contradict the mean if
            the difference has changed while cases were added.
        p: Two-sided p of the hypothesis that a and b do not differ; it never rises as cases are added.
        interval: Interval of the mean; None without a bound. If the difference has changed, it may exclude
            the mean or be empty (``low`` above ``high``).
        units: Number of independent cases or conversations.
    """

    mean: float
    direction: Literal[1, 0, -1]
    p: float
    interval: Interval | None
    units: int


def any_look(
    differences: npt.ArrayLike,
    clusters: Sequence[Hashable | None] | None = None,
    *,
    bound: float | None,
    level: float = 0.95,
) -> AnyLook:
    """Return a test and an interval that hold however often one looks while cases are added.

    If a and b do not differ, p ever reaches 1 - ``level`` with at most that probability. The price is power,
    which ``benchmarks/looks.py`` measures.

    With a ``bound``, the hypothesis is that each difference has a mean of 0 given the earlier ones, and the
    interval contains all means that were never rejected. Without one, it is that each difference could have
    had the opposite sign, as for `sign_flip_p`.

    Args:
        differences: Shape (cases,): score of b minus score of a. Append new cases, in an order that does not
            depend on their scores.
        clusters: As for `paired_difference`. A group counts as one value, the mean of its cases, at the
            position of its last case.
        bound: Largest possible difference, such as 1 for scores from 0 to 1; None if unbounded.
        level: Confidence level.

    Raises:
        ValueError: The arrays are empty, have other shapes, or contain NaN or infinity; or ``level`` or
            ``bound`` is out of range.

    Source: Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting, Journal of the
    Royal Statistical Society B 86 (2024), section 4; for signs, Howard, Ramdas, McAuliffe and Sekhon,
    Time-uniform Chernoff bounds via nonnegative supermartingales, Probability Surveys 17 (2020), lemma 3. Two
    bets, one in each direction, share the initial wealth.
    """
    check_level(level)
    values = _values(checked_differences(differences, clusters), clusters)
    mean = math.fsum(values) / len(values)
    if bound is None:
        moved = values[values != 0.0]
        lowest = -np.abs(moved)
        # The size of a difference carries no information about its sign, so the scale may depend on it.
        sizes = np.cumsum(np.abs(moved)) / np.arange(1, len(moved) + 1)
        return AnyLook(mean, *_tested(moved, lowest, _NORMAL * sizes), None, len(values))
    if not (math.isfinite(bound) and bound > 0.0 and (np.abs(values) <= bound).all()):
        raise ValueError(f"bound must be a number that no difference exceeds, not {bound}")
    lowest = np.full(len(values), -bound)
    scale = np.sqrt(running_mean(values**2, bound**2))
    limit = threshold(1.0 - level) + math.log(2.0)  # for each bound
    low, high = (
        lower_bound(turned, lowest, scale, extent=bound, limit=limit) for turned in (values, -values)
    )
    return AnyLook(mean, *_tested(values, lowest, scale), Interval(low, -high), len(values))


def fewest_cases_at_any_look(*, bound: float | None, alpha: float = 0.05) -> int:
    """Return the smallest number of differing independent cases with which `any_look` can reach ``alpha``.

    It assumes that all differ in one direction, by the same amount or by the largest possible one.

    Args:
        bound: As for `any_look`.
        alpha: Probability of a false alarm.

    Returns:
        The number of cases: 10 at 0.05 with a bound, 12 without.

    Raises:
        ValueError: ``alpha`` is not between 0 and 1.

    Source: as for `any_look`.
    """
    threshold(alpha)  # checks alpha; half of it, below, may be a probability where alpha is not
    size, reached = 16, None
    while reached is None:
        size *= 2
        scale = np.full(size, _NORMAL if bound is None else 1.0)
        reached = log_e_process(np.ones(size), -np.ones(size), scale).rejected_at(alpha / 2.0)
    return reached


def more_cases_at_any_look(
    differences: npt.ArrayLike,
    wanted: float,
    clusters: Sequence[Hashable | None] | None = None,
    *,
    bound: float | None,
    level: float = 0.95,
) -> int | None:
    """Estimate how many more cases `any_look` needs to show a difference in 4 of 5 experiments.

    It assumes that new cases vary like these and that new conversations are as long.

    Args:
        differences: Shape (cases,): as for `any_look`.
        wanted: The true difference to show, on the scale of the metric; its sign does not matter.
        clusters: As for `any_look`.
        bound: As for `any_look`.
        level: Confidence level.

    Returns:
        The number of cases, 0 if these suffice. None for fewer than two independent cases, if the differences
        do not vary, or if ``wanted`` is 0.

    Raises:
        ValueError: As for `any_look`.

    Source: Kelly, A new interpretation of information rate, Bell System Technical Journal 35 (1956): a stake
    s on values with mean d and variance v gains about s * d - s^2 * (v + d^2) / 2 in log wealth per value.
    The 4 of 5 experiments are measured.
    """
    check_level(level)
    given = checked_differences(differences, clusters)
    values = _values(given, clusters)
    spread = float(np.var(values, ddof=1)) if len(values) > 1 else 0.0
    if not spread > 0.0 or wanted == 0.0:
        return None
    moment = spread + wanted**2
    stake = min(abs(wanted) / moment, math.inf if bound is None else LARGEST_STAKE / bound)
    needed = (threshold(1.0 - level) + _MEASURED) / (stake * abs(wanted) - stake**2 * moment / 2.0)
    return max(0, math.ceil((needed - len(values)) * len(given) / len(values)))


def _values(differences: Floats, clusters: Sequence[Hashable | None] | None) -> Floats:
    """Return the values of independent cases, in the order of completion."""
    if clusters is None:
        return differences
    members: dict[Hashable, list[float]] = {}
    for index, (cluster, value) in enumerate(zip(clusters, differences.tolist(), strict=True)):
        key = ("alone", index) if cluster is None else ("in", cluster)
        members[key] = [*members.pop(key, ()), value]  # moves to the end: the last case decides
    return np.array([math.fsum(values) / len(values) for values in members.values()])


def _tested(values: Floats, lowest: Floats, scale: Floats) -> tuple[Literal[1, 0, -1], float]:
    above, below = (log_e_process(turned, lowest, scale).p for turned in (values, -values))
    return 0 if above == below else 1 if above < below else -1, min(1.0, 2.0 * min(above, below))
