"""Situations in which results depend on one another, and corrected yes or no, for ``statistics.py``.

Each simulation tries several pass rates, judges or likenesses and returns the worst share, with a part of the
data sets for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.situations import UNLABELLED, Floats, Random
from kantan_agents.lab.evaluation.statistics import (
    Interval,
    cohens_kappa,
    corrected_difference,
    corrected_mean,
    length_bias,
    proportion,
)

CLUSTERS = (5, 10, 20, 50)
LABELS = (4, 10, 20, 30, 50, 100, 200)
TALKS = (10, 30, 100)
COVERAGE, ALARMS, TEST_ALARMS = 0.93, 0.05, 0.025
RATES = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
PAIRS = ((0.5, 0.6), (0.9, 0.95), (0.99, 0.99), (0.1, 0.02))
_ACCURACIES = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
_ALIKE = (0.0, 0.3, 0.7, 1.0)
_EACH_ACCURACY = tuple((one,) for one in _ACCURACIES)
_EACH_ALIKE = tuple((one,) for one in _ALIKE)
_SHOWN = tuple(product((0.5, 0.8, 0.95, 0.99), _ALIKE))
_TESTED = tuple(product((0.8, 0.95), _ALIKE))
_RESAMPLES = 400
_ERROR = 0.2
_CORRECTED = tuple(product((0.5, 0.9), (0.5, 1.0), (0.7, 0.95), (0.2, 1.0)))
"""Rates, likeness of labels and of the judge's errors, how often it is right, and the share of labels."""

Simulation = Callable[[int, int], float]
Integers = npt.NDArray[np.intp]
Sizes = Callable[[Random, int], Integers]


class Dependent(NamedTuple):
    """A statistic in a situation.

    Attributes:
        statistic: What is measured.
        situation: What is special about it.
        simulate: Returns the worst share from the number of data sets and the size of each.
        sizes: The sizes: numbers of clusters, or of labels.
        least: The promise, for a coverage.
        most: The promise, for false alarms.
        parts: Of how many shares the worst is returned; each is of a part of the data sets.
    """

    statistic: str
    situation: str
    simulate: Simulation
    sizes: Sequence[int]
    least: float | None = None
    most: float | None = None
    parts: int = 1


def _ten(_: Random, count: int) -> Integers:
    """Return two variants with five repeats of each case."""
    return np.full(count, 10)


def _talks(random: Random, count: int) -> Integers:
    return random.integers(1, 10, size=count)


def _one_long(_: Random, count: int) -> Integers:
    """Return one conversation that is as long as all others together, which have one turn."""
    return np.array([count - 1, *np.ones(count - 1, dtype=np.intp)])


_SIZES: dict[str, Sizes] = {
    "10 repeats of each case": _ten,
    "conversations of 1 to 9 turns": _talks,
    "one long conversation": _one_long,
}


def results(random: Random, sizes: Integers, rate: float, alike: float) -> tuple[Floats, Integers]:
    """Return yes or no, and the cluster of each; ``alike`` is the correlation inside a cluster."""
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    common = random.random(len(sizes))[clusters] < rate
    of_their_own = random.random(len(clusters)) < alike**0.5
    return np.where(of_their_own, common, random.random(len(clusters)) < rate).astype(np.float64), clusters


def rate_coverage(sizes: str, repeats: int, count: int) -> float:
    """Return the share of intervals of a rate that contain it."""

    def share(random: Random, times: int, rate: float, alike: float) -> float:
        drawn = (results(random, _SIZES[sizes](random, count), rate, alike) for _ in range(times))
        return _covered([proportion(one, of.tolist()).interval for one, of in drawn], rate)

    return _worst(share, repeats, count, _SHOWN, min)


def test_alarms(sizes: str, repeats: int, count: int) -> float:
    """Return the share of upper bounds below the rate: tests that fail although the agent is good enough."""

    def share(random: Random, times: int, rate: float, alike: float) -> float:
        drawn = (results(random, _SIZES[sizes](random, count), rate, alike) for _ in range(times))
        found = [proportion(one, of.tolist()).interval for one, of in drawn]
        return float(np.mean([one is not None and one.high < rate for one in found]))

    return _worst(share, repeats, count, _TESTED, max)


def length_alarms(sizes: str, repeats: int, count: int) -> float:
    """Return the share of alarms about lengths that say nothing about the errors."""

    def share(random: Random, times: int, alike: float) -> float:
        found = []
        for seed in range(times):
            clusters = np.repeat(np.arange(count), _SIZES[sizes](random, count))
            shared, own = random.normal(size=(2, count))[:, clusters], random.normal(size=(2, len(clusters)))
            error, length = alike**0.5 * shared + (1 - alike) ** 0.5 * own
            none = np.zeros_like(error)
            of = clusters.tolist()
            found.append(length_bias(error, none, length, of, resamples=_RESAMPLES, seed=seed).p <= ALARMS)
        return float(np.mean(found))

    return _worst(share, repeats, count, _EACH_ALIKE, max)


def kappa_coverage(sizes: str, repeats: int, count: int) -> float:
    """Return the share of intervals of kappa that contain it: two raters, each wrong about a fifth."""
    truth = (1 - 2 * _ERROR) ** 2  # at a rate of one half

    def share(random: Random, times: int, alike: float) -> float:
        found = []
        for seed in range(times):
            given = _SIZES[sizes](random, count)
            (right, of), (first, _), (second, _) = (
                results(random, given, rate, alike) for rate in (0.5, _ERROR, _ERROR)
            )
            one, other = np.abs(right - first), np.abs(right - second)
            found.append(cohens_kappa(one, other, of.tolist(), resamples=_RESAMPLES, seed=seed).interval)
        return _covered(found, truth)

    return _worst(share, repeats, count, _EACH_ALIKE, min)


def corrected_coverage(rate: float, repeats: int, count: int) -> float:
    """Return the share of intervals of a corrected pass rate that contain it."""

    def share(random: Random, times: int, accuracy: float) -> float:
        drawn = (_judged(random, count, rate, accuracy) for _ in range(times))
        return _covered([corrected_mean(*one).interval for one in drawn], rate)

    return _worst(share, repeats, count, _EACH_ACCURACY, min)


def talks_coverage(sizes: str, repeats: int, count: int) -> float:
    """Return the share of intervals of a corrected rate that contain it, with cases of conversations."""

    def share(random: Random, times: int, *given: float) -> float:
        drawn = (_judged_talks(random, sizes, count, *given) for _ in range(times))
        return _covered([corrected_mean(one[0], by[0], None, of).interval for one, by, of in drawn], given[0])

    return _worst(share, repeats, count, _CORRECTED, min)


def talks_difference_coverage(sizes: str, repeats: int, count: int) -> float:
    """Return the share of intervals of a corrected difference that contain that there is none, likewise."""

    def share(random: Random, times: int, *given: float) -> float:
        drawn = (_judged_talks(random, sizes, count, *given) for _ in range(times))
        found = [corrected_difference(a, b, by_a, by_b, None, of) for (a, b), (by_a, by_b), of in drawn]
        return _covered([one.interval for one in found], 0.0)

    return _worst(share, repeats, count, _CORRECTED, min)


def _judged_talks(
    random: Random, sizes: str, count: int, rate: float, alike: float, accuracy: float, labelled: float
) -> tuple[Floats, Floats, list[int]]:
    """Return labels, such a share of which is known, what a judge says, and the conversation of each case.

    Labels and scores are of two variants, to whom half of all cases are equally hard.
    """
    given = _SIZES[sizes](random, count)
    (a, of), (b, _) = (results(random, given, rate, alike) for _ in range(2))
    labels = np.array([a, np.where(random.random(len(a)) < 0.5, a, b)])  # noqa: PLR2004
    scores = np.abs(labels - [results(random, given, 1.0 - accuracy, alike)[0] for _ in range(2)])
    labels[:, random.permutation(len(a))[math.ceil(labelled * len(a)) :]] = np.nan
    return labels, scores, of.tolist()


def difference_coverage(rates: tuple[float, float], repeats: int, count: int) -> float:
    """Return the share of intervals of a corrected difference of two pass rates that contain it."""

    def share(random: Random, times: int, accuracy: float) -> float:
        found = []
        for _ in range(times):
            luck = random.random(count + UNLABELLED)  # of the case, which both share in half of all cases
            other = np.where(random.random(len(luck)) < 0.5, luck, random.random(len(luck)))  # noqa: PLR2004
            a = _judged(random, count, rates[0], accuracy, luck)
            b = _judged(random, count, rates[1], accuracy, other)
            found.append(corrected_difference(a[0], b[0], a[1], b[1]).interval)
        return _covered(found, rates[1] - rates[0])

    return _worst(share, repeats, count, _EACH_ACCURACY, min)


def _judged(
    random: Random, count: int, rate: float, accuracy: float, luck: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return labels, so many of which are known, and what a judge says who is right in such a share."""
    luck = random.random(count + UNLABELLED) if luck is None else luck
    labels = (luck < rate).astype(np.float64)
    scores = np.where(random.random(len(labels)) < accuracy, labels, 1.0 - labels)
    labels[count:] = np.nan
    return labels, scores


def _worst(
    share: Callable[..., float],
    repeats: int,
    count: int,
    situations: Sequence[tuple[float, ...]],
    worst: Callable[[list[float]], float],
) -> float:
    listed = list(situations)
    times = max(1, repeats // len(listed))
    return worst(
        [share(np.random.default_rng([number, count]), times, *one) for number, one in enumerate(listed)]
    )


def _covered(intervals: Sequence[Interval | None], truth: float) -> float:
    known = [one for one in intervals if one is not None]
    return float(np.mean([one.low - 1e-9 <= truth <= one.high + 1e-9 for one in known])) if known else 1.0


def dependent() -> list[Dependent]:
    """Return all of it."""
    found: list[Dependent] = []
    for sizes in _SIZES:
        if sizes != "one long conversation":
            found += [
                _coverage("rate", sizes, partial(rate_coverage, sizes), CLUSTERS, _SHOWN),
                _coverage("kappa", sizes, partial(kappa_coverage, sizes), CLUSTERS[1:], _EACH_ALIKE),
                _alarms("length", sizes, partial(length_alarms, sizes), ALARMS, _EACH_ALIKE),
            ]
        found += [
            _alarms("test", sizes, partial(test_alarms, sizes), TEST_ALARMS, _TESTED),
            _coverage("corrected rate", sizes, partial(talks_coverage, sizes), TALKS, _CORRECTED),
            _coverage(
                "corrected difference", sizes, partial(talks_difference_coverage, sizes), TALKS, _CORRECTED
            ),
        ]
    for rate in RATES:
        named, simulate = f"{rate:.0%} yes", partial(corrected_coverage, rate)
        found.append(_coverage("corrected rate", named, simulate, LABELS, _EACH_ACCURACY))
    for pair in PAIRS:
        named, simulate = f"{pair[0]:.0%} to {pair[1]:.0%} yes", partial(difference_coverage, pair)
        found.append(_coverage("corrected difference", named, simulate, LABELS, _EACH_ACCURACY))
    return sorted(found, key=lambda one: one.statistic)


def _coverage(
    statistic: str, situation: str, simulate: Simulation, sizes: Sequence[int], parts: Sequence[object]
) -> Dependent:
    named = f"{statistic}, coverage"
    return Dependent(named, situation, simulate, sizes, least=COVERAGE, parts=len(parts))


def _alarms(
    statistic: str, situation: str, simulate: Simulation, most: float, parts: Sequence[object]
) -> Dependent:
    return Dependent(f"{statistic}, false alarms", situation, simulate, CLUSTERS, most=most, parts=len(parts))
