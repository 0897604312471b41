"""How good a judge is: its rates, and whether it is biased by position, length or time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kantan_agents.lab.evaluation.statistics import (
    block_orders,
    clopper_pearson,
    drift,
    judge_rates,
    length_bias,
    position_bias,
    trend,
)
from tests.lab.evaluation.statistics.strategies import SCORES

CASES = st.lists(st.tuples(SCORES, SCORES, st.integers(0, 9)), min_size=1, max_size=20)
CHOICES = st.lists(st.tuples(st.sampled_from([1, 0, -1]), st.sampled_from([1, 0, -1])), max_size=20)


def test_rates_are_apart_for_what_people_passed_and_failed() -> None:
    person = [1] * 8 + [0] * 4
    judge = [1] * 6 + [0] * 2 + [0] * 3 + [1]
    rates = judge_rates(judge, person)
    assert rates.true_positive == (0.75, clopper_pearson(6, 8), 6, 8, 8)
    assert rates.true_negative == (0.75, clopper_pearson(3, 4), 3, 4, 4)


def test_a_judge_that_passes_everything_has_no_true_negatives() -> None:
    rates = judge_rates([True] * 10, [True] * 9 + [False])
    assert (rates.true_positive.value, rates.true_negative.value) == (1.0, 0.0)
    assert judge_rates([1, 0], [1, 1]).true_negative == (None, None, 0, 0, 0)


def test_a_judge_that_prefers_the_first_answer_is_found() -> None:
    found = position_bias([1] * 9 + [1, -1, 0], [1] * 9 + [-1, 1, 0])
    assert found == pytest.approx((9, 0, 3, 0.75, 2 / 2**9))


def test_a_tie_in_one_order_leans_to_the_position_of_the_other() -> None:
    found = position_bias([1, 0, -1], [0, -1, 0])
    assert (found.first, found.second, found.consistent) == (1, 2, 0)


@given(CHOICES)
def test_the_position_bias_does_not_depend_on_which_answer_is_called_a(pairs: list[tuple[int, int]]) -> None:
    one, other = [x for x, _ in pairs], [y for _, y in pairs]
    found = position_bias(one, other)
    assert position_bias(other, one) == found
    mirrored = position_bias([-x for x in one], [-y for y in other])
    assert (mirrored.first, mirrored.second, mirrored.p) == (found.second, found.first, found.p)
    assert mirrored.bias == -found.bias


@given(data=st.data(), cases=CASES)
def test_the_order_of_the_cases_does_not_matter(data: st.DataObject, cases: list[tuple[float, ...]]) -> None:
    shuffled = data.draw(st.permutations(cases))
    found = length_bias(*zip(*cases, strict=True), resamples=50)
    assert length_bias(*zip(*shuffled, strict=True), resamples=50) == found


def test_repeated_cases_are_no_new_cases() -> None:
    person, judge = [1] * 100, [1] * 80 + [0] * 20
    clusters = [number // 10 for number in range(100)]
    rate = judge_rates(judge, person, clusters).true_positive
    assert (rate.value, rate.agreed, rate.cases, rate.units) == (0.8, 80, 100, 10)
    assert rate.interval == pytest.approx(clopper_pearson(8, 10))
    found = position_bias([1] * 20, [1] * 20, [number // 10 for number in range(20)])
    assert (found.first, found.p) == (20, 0.5)  # two cases
    trending = length_bias(
        np.repeat([0.0, 1.0, 2.0], 10), np.zeros(30), np.repeat([1, 2, 3], 10), clusters[:30]
    )
    assert trending.correlation == pytest.approx(1.0)
    # Of the six orders of three cases, two are as extreme; no order of three could be significant.
    assert trending.p == trending.least_p == pytest.approx(1 / 3, abs=0.02)


@pytest.mark.parametrize("alike", [0.0, 0.6, 1.0])
def test_false_alarms_of_a_trend_are_as_rare_as_promised_with_clusters(alike: float) -> None:
    random = np.random.default_rng(8)
    alarms = []
    for _ in range(200):
        sizes = random.integers(1, 5, size=12)
        clusters = np.repeat(np.arange(12), sizes)
        shared, own = random.normal(size=(2, 12))[:, clusters], random.normal(size=(2, len(clusters)))
        error, length = np.sqrt(alike) * shared + np.sqrt(1 - alike) * own
        found = length_bias(error, np.zeros(len(clusters)), length, clusters.tolist(), resamples=199)
        alarms.append(found.p <= 0.05)
    assert np.mean(alarms) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz")), min_size=1, max_size=12),
    st.integers(0, 99),
)
def test_random_orders_leave_clusters_and_their_cases_together(
    groups: list[tuple[str, str]], seed: int
) -> None:
    clusters, inside = zip(*groups, strict=True)
    x = np.arange(float(len(groups)))
    blocks = block_orders.blocks_of(x, x, clusters, inside)
    assert sorted(blocks.order) == list(range(len(groups)))
    before = [groups[index] for index in blocks.order]
    for order in blocks.random_orders(np.random.default_rng(seed), 3):
        after = [before[index] for index in order]
        # What was of one cluster, or of one case, is so afterwards too.
        assert len({(one, other) for (one, _), (other, _) in zip(before, after, strict=True)}) == len(
            set(clusters)
        )
        assert len(set(zip(before, after, strict=True))) == len(set(groups))


@pytest.mark.parametrize("ties", [False, True])
def test_slope_and_correlation_are_those_of_scipy(ties: bool) -> None:
    random = np.random.default_rng(4)
    lengths = random.integers(5, size=60) if ties else random.exponential(500, size=60)
    person = random.normal(size=60)
    judge = person + 0.3 * stats.zscore(lengths) + random.normal(size=60)
    found = length_bias(judge, person, lengths)
    expected = stats.spearmanr(lengths, judge - person)
    assert found.correlation == pytest.approx(expected.statistic)
    assert found.p == pytest.approx(expected.pvalue, abs=0.01)
    assert found.slope == pytest.approx(stats.theilslopes(judge - person, lengths).slope)
    assert found.cases == 60


def test_the_slope_of_many_cases_is_of_a_part_of_the_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    times = np.arange(300.0)
    judge = 0.01 * times + random.normal(size=300)
    whole = drift(judge, np.zeros(300), times, resamples=100)
    monkeypatch.setattr(trend, "_MOST_PAIRED", 10)
    assert drift(judge, np.zeros(300), times, resamples=100).slope == pytest.approx(whole.slope, rel=0.01)


def test_a_judge_that_drifts_is_found_and_one_that_does_not_is_not() -> None:
    random = np.random.default_rng(6)
    times, person = np.arange(80.0), random.normal(size=80)
    steady = person + random.normal(scale=0.5, size=80)
    assert drift(steady, person, times).p > 0.05
    drifting = drift(steady + 0.01 * times, person, times)
    assert drifting.p < 0.01
    assert drifting.slope == pytest.approx(0.01, rel=0.5)


def test_false_alarms_of_a_trend_are_as_rare_as_promised() -> None:
    random = np.random.default_rng(7)
    p_values = [
        length_bias(
            random.integers(3, size=25),
            random.integers(3, size=25),
            random.exponential(size=25),
            resamples=199,
        ).p
        for _ in range(800)
    ]
    assert np.mean(np.array(p_values) <= 0.05) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 800)


@pytest.mark.parametrize(
    ("judge", "lengths", "slope"),
    [([1.0, 2.0], [1, 2], None), ([1.0, 2.0, 3.0], [5, 5, 5], None), ([1.0, 1.0, 1.0], [1, 2, 3], 0.0)],
)
def test_few_cases_or_no_variance_show_no_trend(judge: Any, lengths: Any, slope: float | None) -> None:
    found = length_bias(judge, np.zeros(len(judge)), lengths)
    assert found == (slope, None, 1.0, len(judge), 1.0)


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: judge_rates([1], [1, 0]),
        lambda: judge_rates([0.5], [1]),
        lambda: judge_rates([1], [1], ["a", "b"]),
        lambda: position_bias([1], [1], ["a", "b"]),
        lambda: drift([1.0], [1.0], [1.0], ["a", "b"]),
        lambda: position_bias([1], [1, 1]),
        lambda: position_bias([2], [1]),
        lambda: length_bias([1.0, 2.0], [1.0], [1.0]),
        lambda: length_bias([1.0, np.nan, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
        lambda: drift([1.0], [1.0], [1.0], resamples=0),
    ],
)
def test_misuse_is_a_value_error(misuse: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        misuse()
