"""Repeated looks and several variants: how often a verdict is false, and what the protection costs.

``benchmarks/statistics.py`` prints these lines. The size is the number of cases at the last of ten looks,
which are equally far apart.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from benchmarks.situations import PAIRED, Differences, Random
from kantan_agents.lab.evaluation.statistics import any_look, holm, paired_p

LOOKS, VARIANTS, LEVEL = 10, 10, 0.95
SIZES = (50, 100, 200)
RESAMPLES = 500
_FAILED = 0.2
_BOUNDED: Final = ("few values", "-1, 0 or 1", "-1, 0 or 1, one side better")


class Line(NamedTuple):
    """A line of the table; the attributes are those of ``benchmarks.statistics.Row``."""

    statistic: str
    situation: str
    simulate: Callable[[int, int], float]
    sizes: tuple[int, ...]
    least: float | None = None
    most: float | None = None


def _bound(situation: int) -> float | None:
    return 1.0 if PAIRED[situation].name in _BOUNDED else None


def _drawn(situation: int, size: int, repeats: int) -> list[Differences]:
    random = np.random.default_rng([situation, size])
    return [PAIRED[situation].draw(random, size) for _ in range(repeats)]


def _one_look(differences: Differences, seed: int, size: int | None = None) -> bool:
    values, clusters = differences
    if size is not None and clusters is not None:
        size = sum(cluster < size for cluster in clusters)
    values, clusters = values[:size], None if clusters is None else clusters[:size]
    found = paired_p(np.zeros_like(values), values, clusters, resamples=RESAMPLES, seed=seed)
    return found.p <= 1 - LEVEL


def verdicts_of_one_look(situation: int, repeats: int, size: int) -> float:
    """Return the share of verdicts of one look at all cases."""
    drawn = _drawn(situation, size, repeats)
    return float(np.mean([_one_look(one, seed) for seed, one in enumerate(drawn)]))


def verdicts_of_ten_looks(situation: int, repeats: int, size: int) -> float:
    """Return the share of evaluations of which one of ten looks gives a verdict, by the test for one look."""
    looks = [size * number // LOOKS for number in range(1, LOOKS + 1)]
    drawn = _drawn(situation, size, repeats)
    return float(
        np.mean([any(_one_look(one, seed, look) for look in looks) for seed, one in enumerate(drawn)])
    )


def verdicts_at_any_look(situation: int, repeats: int, size: int) -> float:
    """Return the share of evaluations of which any look gives a verdict.

    The last look has it, as p never rises.
    """
    bound = _bound(situation)
    found = [any_look(*one, bound=bound).p for one in _drawn(situation, size, repeats)]
    return float(np.mean(np.array(found) <= 1 - LEVEL))


def verdicts_after_one_look(situation: int, repeats: int, size: int) -> float:
    """Return the share of verdicts: of one look at half of the cases, or of any look after it."""
    bound = _bound(situation)
    drawn = _drawn(situation, size, repeats)
    return float(
        np.mean(
            [
                _one_look(one, seed, size // 2) or any_look(*one, bound=bound).p <= 1 - LEVEL
                for seed, one in enumerate(drawn)
            ]
        )
    )


def verdicts_with_failed_runs(repeats: int, size: int) -> float:
    """Return the share of evaluations of which one of ten looks gives a verdict, with runs that fail.

    A fifth of all new runs fails and counts as 0. Before the next look, they are made again in their places.
    """
    random = np.random.default_rng(size)
    looks = [size * number // LOOKS for number in range(1, LOOKS + 1)]
    found = 0
    for _ in range(repeats):
        scores = random.integers(3, size=(2, size)) / 2.0
        fails = random.random((2, size)) < _FAILED
        for before, look in zip([0, *looks], looks, strict=False):
            seen = np.where(fails & (np.arange(size) >= before), 0.0, scores)[:, :look]
            if any_look(seen[1] - seen[0], bound=1.0).p <= 1 - LEVEL:
                found += 1
                break
    return found / repeats


def coverage_at_any_look(situation: int, repeats: int, size: int) -> float:
    """Return the share of intervals that contain the truth at all looks: they never grow."""
    truth = PAIRED[situation].truth
    found = [any_look(*one, bound=_bound(situation)).interval for one in _drawn(situation, size, repeats)]
    return float(np.mean([one is not None and one.low <= truth <= one.high for one in found]))


def verdicts_about_variants(is_adjusted: bool, repeats: int, size: int) -> float:
    """Return the share of evaluations in which any of ten variants differs from a control that they equal."""
    random = np.random.default_rng(size)
    found = 0
    for seed in range(repeats):
        scores = _scores(random, size)
        p = [paired_p(scores[0], other, resamples=RESAMPLES, seed=seed).p for other in scores[1:]]
        found += min(holm(p) if is_adjusted else p) <= 1 - LEVEL
    return found / repeats


def _scores(random: Random, size: int) -> list[np.typing.NDArray[np.float64]]:
    """Draw scores of a control and ten variants, with what makes each case hard in common."""
    hard = random.normal(size=size)
    return [np.round(2 * (hard + random.normal(size=size))) / 4 for _ in range(VARIANTS + 1)]


def lines() -> list[Line]:
    """Return the lines of the table; those without a promise show what happens otherwise."""
    names = {one.name: number for number, one in enumerate(PAIRED)}
    equal = [
        names[one] for one in ("normal", "heavy tails (t3)", "few values", "-1, 0 or 1", "conversations")
    ]
    better = names["-1, 0 or 1, one side better"]
    found = [
        Line(
            "any look, false verdicts", PAIRED[one].name, partial(verdicts_at_any_look, one), SIZES, most=0.05
        )
        for one in equal
    ]
    found.append(
        Line("any look, runs made again", "a fifth had failed", verdicts_with_failed_runs, SIZES, most=0.05)
    )
    found += [
        Line("any look, coverage", PAIRED[one].name, partial(coverage_at_any_look, one), SIZES, least=LEVEL)
        for one in (names["few values"], names["-1, 0 or 1"], better)
    ]
    for one in (names["normal"], names["-1, 0 or 1"]):
        name = PAIRED[one].name
        found += [
            Line("ten looks, false verdicts", name, partial(verdicts_of_ten_looks, one), SIZES),
            Line("one look, then any, false", name, partial(verdicts_after_one_look, one), SIZES),
        ]
    found += [
        Line("one look, power", PAIRED[better].name, partial(verdicts_of_one_look, better), SIZES),
        Line("any look, power", PAIRED[better].name, partial(verdicts_at_any_look, better), SIZES),
        Line("ten variants, one by one", "equal", partial(verdicts_about_variants, False), SIZES),
        Line("ten variants, together", "equal", partial(verdicts_about_variants, True), SIZES, most=0.05),
    ]
    return found
