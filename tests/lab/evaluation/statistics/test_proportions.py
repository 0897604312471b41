"""Intervals of pass rates: against scipy, and their coverage, which can be enumerated."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kantan_agents.lab.evaluation.statistics import Interval, clopper_pearson, wilson

COUNTS = st.integers(1, 400).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total)))
INTERVALS = [(wilson, "wilson"), (clopper_pearson, "exact")]


@pytest.mark.parametrize(("interval", "name"), INTERVALS)
@given(counts=COUNTS, level=st.sampled_from([0.8, 0.95, 0.99]))
def test_it_agrees_with_scipy(
    interval: Callable[..., Interval], name: str, counts: tuple[int, int], level: float
) -> None:
    expected = stats.binomtest(*counts).proportion_ci(level, method=name)
    assert interval(*counts, level=level) == pytest.approx((expected.low, expected.high), abs=1e-9)


@pytest.mark.parametrize(("interval", "name"), INTERVALS)
@given(counts=COUNTS)
def test_failures_are_the_mirror_of_successes(
    interval: Callable[..., Interval], name: str, counts: tuple[int, int]
) -> None:
    successes, total = counts
    here, there = interval(successes, total), interval(total - successes, total)
    assert here == pytest.approx((1 - there.high, 1 - there.low))
    assert 0.0 <= here.low <= successes / total <= here.high <= 1.0


@pytest.mark.parametrize("total", [5, 30, 100])
def test_the_exact_interval_never_covers_less_than_it_says(total: int) -> None:
    assert coverage(clopper_pearson, total).min() >= 0.95


@pytest.mark.parametrize("total", [10, 30, 100])
def test_wilsons_interval_covers_as_often_as_it_says_on_average(total: int) -> None:
    assert coverage(wilson, total).mean() == pytest.approx(0.95, abs=0.01)


def coverage(interval: Callable[..., Interval], total: int) -> np.ndarray:
    """Return the coverage at each rate, from the probability of each count."""
    rates = np.linspace(0.005, 0.995, 199)
    bounds = np.array([interval(successes, total) for successes in range(total + 1)])
    covers = (bounds[:, :1] <= rates) & (rates <= bounds[:, 1:])
    return np.asarray((stats.binom.pmf(np.arange(total + 1)[:, None], total, rates) * covers).sum(axis=0))


@pytest.mark.parametrize("counts", [(0, 0), (-1, 5), (6, 5)])
@pytest.mark.parametrize(("interval", "name"), INTERVALS)
def test_impossible_counts_are_refused(
    interval: Callable[..., Interval], name: str, counts: tuple[int, int]
) -> None:
    with pytest.raises(ValueError, match="successes"):
        interval(*counts)
