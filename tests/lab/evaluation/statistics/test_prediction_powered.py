"""Means on the people's scale: special cases, invariants, and the formula of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchmarks.situations import JUDGED, labelled
from kantan_agents.lab.evaluation.statistics import clopper_pearson, corrected_difference, corrected_mean
from kantan_agents.lab.evaluation.statistics.skewness import skew_corrected

SEEDS = st.integers(0, 10_000)


def drawn(seed: int = 0, count: int = 40, unlabelled: int = 200, situation: int = 0) -> tuple[Any, Any]:
    labels, scores, _ = labelled(JUDGED[situation], np.random.default_rng(seed), count, unlabelled)
    return labels, scores


@pytest.mark.parametrize("seed", range(20))
def test_the_estimate_is_that_of_the_paper(seed: int) -> None:
    labels, scores = drawn(seed)
    y, f, rest = labels[:40], scores[:40], scores[40:]
    found = corrected_mean(labels, scores)
    weight = np.cov(y, f)[0, 1] / np.var(f, ddof=1) / (1 + 40 / 200)  # lambda of PPI++
    assert found.mean == pytest.approx(weight * rest.mean() + np.mean(y - weight * f))
    error = np.sqrt(np.var(y - weight * f, ddof=2) / 40 + weight**2 * np.var(rest, ddof=1) / 200)
    # The jackknife allows for the choice of the weight, so it is larger, but not by much.
    assert 0.85 * error < found.standard_error < 1.25 * error


def test_a_good_judge_shortens_the_interval_and_a_useless_one_hardly_lengthens_it() -> None:
    def ratio(situation: int) -> float:
        widths = []
        for seed in range(60):
            labels, scores = drawn(seed, unlabelled=1_000, situation=situation)
            interval = corrected_mean(labels, scores).interval
            assert interval is not None
            alone = 2 * stats.t.ppf(0.975, 39) * stats.sem(labels[:40])
            widths.append((interval.high - interval.low) / alone)
        return float(np.median(widths))

    assert ratio(0) < 0.75
    assert ratio(1) == pytest.approx(1.06, abs=0.06)


@given(SEEDS)
def test_a_judge_that_says_the_same_of_all_leaves_the_labels_alone(seed: int) -> None:
    labels, _ = drawn(seed)
    found = corrected_mean(labels, np.full(len(labels), 0.7))
    assert found.judge_weight == 0.0
    assert found.mean == pytest.approx(labels[:40].mean())
    assert found.standard_error == pytest.approx(stats.sem(labels[:40]))


@pytest.mark.parametrize("seed", range(20))
def test_with_all_labels_the_mean_is_theirs(seed: int) -> None:
    labels, scores = drawn(seed, unlabelled=0)
    found = corrected_mean(labels, scores)
    assert found.mean == pytest.approx(labels.mean())
    assert found.standard_error == pytest.approx(stats.sem(labels), rel=0.08)


@given(SEEDS, st.sampled_from([0.5, 3.0]), st.sampled_from([-2.0, 10.0]))
def test_another_scale_changes_the_result_alike(seed: int, scale: float, shift: float) -> None:
    labels, scores = drawn(seed)
    here, there = corrected_mean(labels, scores), corrected_mean(scale * labels + shift, scores)
    assert here.interval is not None
    assert there.mean == pytest.approx(scale * here.mean + shift)
    assert there.interval == pytest.approx([scale * bound + shift for bound in here.interval])
    assert corrected_mean(labels, scale * scores + shift).interval == pytest.approx(here.interval)
    assert corrected_mean(-labels, scores).interval == pytest.approx(here.interval.negated())


@given(SEEDS)
def test_the_order_of_the_cases_does_not_matter(seed: int) -> None:
    labels, scores = drawn(seed)
    order = np.random.default_rng(seed).permutation(len(labels))
    here, there = corrected_mean(labels, scores), corrected_mean(labels[order], scores[order])
    assert there.interval == pytest.approx(here.interval)


@given(SEEDS)
def test_a_difference_is_the_mean_of_the_differences(seed: int) -> None:
    labels_a, scores_a = drawn(seed)
    labels_b, scores_b = drawn(seed + 1)
    found = corrected_difference(labels_a, labels_b, scores_a, scores_b)
    assert found == corrected_mean(labels_b - labels_a, scores_b - scores_a)
    swapped = corrected_difference(labels_b, labels_a, scores_b, scores_a)
    assert found.interval is not None
    assert swapped.mean == pytest.approx(-found.mean)
    assert swapped.interval == pytest.approx(found.interval.negated())


def test_a_version_compared_with_itself_does_not_differ() -> None:
    labels, scores = drawn()
    found = corrected_difference(labels, labels, scores, scores)
    assert (found.mean, found.interval) == (0.0, None)


def test_equal_probabilities_are_the_same_as_none() -> None:
    labels, scores = drawn()
    given_probabilities = corrected_mean(labels, scores, np.full(len(labels), 40 / 240))
    assert given_probabilities.interval == pytest.approx(corrected_mean(labels, scores).interval)


def test_unequal_probabilities_do_not_bias_the_mean() -> None:
    situation = next(one for one in JUDGED if one.is_unequal)
    weighted, plain = [], []
    for seed in range(300):
        labels, scores, probabilities = labelled(situation, np.random.default_rng(seed), 60, 300)
        scores = np.zeros_like(scores)  # the judge would make up for a part of the bias
        weighted.append(corrected_mean(labels, scores, probabilities).mean)
        plain.append(corrected_mean(labels, scores).mean)
    assert np.mean(weighted) == pytest.approx(situation.truth, abs=0.03)
    assert np.mean(plain) < situation.truth - 0.2


@pytest.mark.parametrize("count", [1, 3, 29])
def test_few_labels_on_an_unknown_scale_have_no_interval(count: int) -> None:
    labels, scores = drawn(count=count)
    found = corrected_mean(labels, scores)
    assert (found.interval, found.labels) == (None, count)
    assert (found.standard_error is None) == (count < 4)
    low = np.nanmin(labels) - 1.0
    assert corrected_mean(labels, scores, bounds=(low, low + 9.0)).interval is not None


@given(
    st.integers(1, 60).flatmap(lambda labels: st.tuples(st.just(labels), st.integers(0, labels))),
    st.integers(0, 80),
    SEEDS,
)
def test_the_interval_of_yes_or_no_is_inside_the_scale_and_never_wider_than_that_of_the_labels(
    counts: tuple[int, int], rest: int, seed: int
) -> None:
    labels, passed = counts
    random = np.random.default_rng(seed)
    given_labels = np.concatenate([np.arange(labels) < passed, np.full(rest, np.nan)])
    scores = np.where(random.random(labels + rest) < 0.7, np.nan_to_num(given_labels, nan=1.0), 0.0)
    found = corrected_mean(given_labels, scores)
    alone = clopper_pearson(passed, labels)
    assert found.interval is not None
    low, high = found.interval
    assert 0.0 <= low <= found.mean <= high <= 1.0
    assert high - low <= alone.high - alone.low + 1e-9
    if found.judge_weight == 0.0:
        assert found.interval == pytest.approx(alone)


@given(SEEDS, st.integers(1, 60))
def test_the_interval_of_a_difference_stays_inside_the_scale(seed: int, labels: int) -> None:
    random = np.random.default_rng(seed)
    a, b, scores_a, scores_b = (random.random((4, labels + 40)) < random.random((4, 1))).astype(float)
    a[labels:] = b[labels:] = np.nan
    found = corrected_difference(a, b, scores_a, scores_b)
    assert found.interval is not None
    assert -1.0 <= found.interval.low <= found.mean <= found.interval.high <= 1.0
    swapped = corrected_difference(b, a, scores_b, scores_a)
    assert swapped.interval == pytest.approx(found.interval.negated(), abs=1e-9)


def test_errors_of_a_judge_that_the_labels_do_not_show_are_allowed_for() -> None:
    labels = np.concatenate([np.ones(24), np.zeros(6), np.full(970, np.nan)])
    scores = np.concatenate([np.ones(24), np.zeros(6), np.arange(970) % 4 > 0])  # right wherever it is known
    found = corrected_mean(labels, scores)
    assert found.judge_weight == pytest.approx(1.0)
    # As if it were wrong in three of the 30 labels.
    assert found.standard_error == pytest.approx(np.sqrt(3) / 30, rel=0.1)


def test_labels_that_are_all_equal_have_an_interval_if_their_scale_is_known() -> None:
    scores = np.random.default_rng(0).normal(size=50)
    yes = np.where(np.arange(50) < 40, 1.0, np.nan)
    found = corrected_mean(yes, scores)
    assert (found.mean, found.judge_weight) == pytest.approx((1.0, 0.0))
    assert (found.standard_error, found.labels, found.cases) == (None, 40, 50)
    assert found.interval == pytest.approx(clopper_pearson(40, 40))
    assert corrected_mean(3.0 * yes, scores).interval is None
    grades = corrected_mean(3.0 * yes, scores, bounds=(1.0, 5.0)).interval
    assert grades is not None and 1.0 < grades.low < 3.0 < grades.high < 5.0


@pytest.mark.parametrize("skewness", [-1.5, -0.2, 0.0, 0.2, 1.5])
def test_an_interval_for_skewed_data_is_never_shorter_than_that_of_t(skewness: float) -> None:
    low, high = skew_corrected(0.0, 1.0, skewness, 20, 0.95)
    t = stats.t.ppf(0.975, 20)
    assert low <= -t * (1 - 1e-9)
    assert high >= t * (1 - 1e-9)
    assert (high > t * (1 + 1e-9)) == (skewness > 0)
    assert (low < -t * (1 + 1e-9)) == (skewness < 0)
    # The transformed studentised error is t again.
    # The transformation of Hall's paper, of the studentised error that the bound allows for.
    error = -max(low, high, key=abs)
    transformed = error + skewness * error**2 / 3 + skewness**2 * error**3 / 27 + skewness / 6
    assert skewness == 0.0 or abs(transformed) == pytest.approx(t)


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: corrected_mean([np.nan, np.nan], [1.0, 2.0]),
        lambda: corrected_mean([1.0], [1.0, 2.0]),
        lambda: corrected_mean([1.0, np.inf], [1.0, 2.0]),
        lambda: corrected_mean([1.0, np.nan], [1.0, np.nan]),
        lambda: corrected_mean([1.0, np.nan], [1.0, 2.0], [0.0, 0.5]),
        lambda: corrected_mean([1.0, np.nan], [1.0, 2.0], [1.5, 0.5]),
        lambda: corrected_mean([1.0, np.nan], [1.0, 2.0], [0.5]),
        lambda: corrected_mean([1.0, np.nan], [1.0, 2.0], None, ["a"]),
        lambda: corrected_difference([1.0], [1.0, 2.0], [1.0], [1.0]),
        lambda: corrected_mean([3.0, 4.0], [1.0, 2.0], bounds=(0.0, 1.0)),
        lambda: corrected_mean([3.0, 4.0], [1.0, 2.0], bounds=(5.0, 1.0)),
    ],
)
def test_misuse_is_a_value_error(misuse: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        misuse()


@given(SEEDS)
def test_clusters_of_one_case_are_cases_of_their_own(seed: int) -> None:
    labels, scores = drawn(seed)
    alone = corrected_mean(labels, scores)
    assert corrected_mean(labels, scores, clusters=list(range(len(labels)))) == alone
    assert corrected_mean(labels, scores, clusters=[None] * len(labels)) == alone


@given(SEEDS, st.booleans(), st.randoms(use_true_random=False))
def test_cases_that_repeat_in_a_cluster_tell_no_more_than_one(seed: int, is_known: bool, order: Any) -> None:
    labels, scores = drawn(seed)
    bounds = (-9.0, 9.0) if is_known else None
    once = corrected_mean(labels, scores, bounds=bounds)
    cases = order.sample(range(3 * len(labels)), 3 * len(labels))
    thrice = corrected_mean(
        np.repeat(labels, 3)[cases],
        np.repeat(scores, 3)[cases],
        clusters=[case // 3 for case in cases],
        bounds=bounds,
    )
    assert thrice.mean == pytest.approx(once.mean)
    assert thrice.standard_error == pytest.approx(once.standard_error)
    assert thrice.interval == pytest.approx(once.interval)
    assert (thrice.labels, thrice.cases) == (3 * once.labels, 3 * once.cases)


def test_one_long_conversation_counts_as_little_more_than_one_case() -> None:
    yes = np.arange(60) % 2.0
    clusters = ["long"] * 40 + [None] * 20
    unequal, equal = (corrected_mean(yes, yes * 0, None, of).interval for of in (clusters, None))
    assert unequal is not None and equal is not None
    assert unequal.high - unequal.low > 2 * (equal.high - equal.low)
    assert corrected_mean(yes, yes, None, ["all"] * 60).interval is None
