"""The interval of yes or no: its exact coverage, and that it agrees with McNemar's test."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from benchmarks.situations import YES_NO
from benchmarks.statistics import worst_coverage, yes_no_coverage
from kantan_agents.lab.evaluation.statistics import (
    mcnemar,
    paired_difference,
    paired_interval,
    paired_proportions,
)


def answers(only_a: int, only_b: int, same: int) -> tuple[list[float], list[float]]:
    return [1.0] * only_a + [0.0] * (only_b + same), [0.0] * only_a + [1.0] * only_b + [0.0] * same


@pytest.mark.parametrize("count", [5, 6, 8, 9, 12, 29])  # where it is lowest, found by trying 5 to 45
def test_it_covers_whatever_the_rates_and_their_correlation(count: int) -> None:
    assert worst_coverage(0, count) >= 0.93


@pytest.mark.parametrize("rates", YES_NO.values(), ids=YES_NO)
def test_it_covers_in_situations_where_the_bootstrap_does_not(rates: tuple[float, float, float]) -> None:
    assert min(yes_no_coverage(rates, 0, count) for count in (5, 10, 20)) >= 0.95


@pytest.mark.parametrize("level", [0.8, 0.9, 0.95])
def test_it_contains_0_exactly_where_the_test_does_not_reject(level: float) -> None:
    for count in (5, 8, 13, 20):
        for only_a, only_b in product(range(count + 1), repeat=2):
            if only_a + only_b > count:
                continue
            a, b = answers(only_a, only_b, count - only_a - only_b)
            interval = paired_proportions(a, b, level=level).interval
            assert interval is not None
            assert (interval.low <= 0.0 <= interval.high) == (mcnemar(a, b).p > 1 - level)
            assert -1.0 <= interval.low <= (only_b - only_a) / count <= interval.high <= 1.0


def test_it_is_bonett_and_price_with_a_quantile_of_t() -> None:
    a, b = answers(2, 16, 12)
    found = paired_proportions(a, b)
    rates = np.array([3, 17]) / 32
    middle = rates[1] - rates[0]
    half = stats.t.ppf(0.975, 29) * np.sqrt((rates.sum() - middle**2) / 32)
    assert found.mean == pytest.approx(14 / 30)
    assert found.interval == pytest.approx((middle - half, middle + half))


@pytest.mark.parametrize("count", [5, 10, 40])
def test_equal_answers_and_only_flips_have_an_interval(count: int) -> None:
    same, all_flip = (paired_proportions(*answers(0, *counts)) for counts in ((0, count), (count, 0)))
    assert same.interval is not None and all_flip.interval is not None
    assert same.interval.low == -same.interval.high < 0.0
    assert all_flip.interval.low < all_flip.interval.high == 1.0


@pytest.mark.parametrize("count", [1, 4])
def test_fewer_than_five_cases_have_none(count: int) -> None:
    found = paired_proportions(*answers(0, 1, count - 1))
    assert (found.mean, found.interval) == (1 / count, None)
    assert found.missing == "it takes at least 5 cases"


def test_the_interval_fits_the_values() -> None:
    a, b = answers(2, 9, 9)
    assert paired_interval(a, b) == paired_interval(a, b, [None] * 20) == paired_proportions(a, b)
    differences = np.array(b) - np.array(a)
    pairs = [number // 2 for number in range(20)]
    assert paired_interval(a, b, pairs) == paired_difference(differences, pairs)
    thirds = np.array(b) / 3
    assert paired_interval(a, thirds, seed=2) == paired_difference(thirds - np.array(a), seed=2)


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: paired_proportions([], []),
        lambda: paired_proportions([0, 1], [0]),
        lambda: paired_proportions([0.5], [1]),
        lambda: paired_proportions([0], [1], level=1.0),
        lambda: paired_interval([0, 1], [0]),
        lambda: paired_interval([], []),
    ],
)
def test_misuse_is_a_value_error(misuse: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        misuse()
