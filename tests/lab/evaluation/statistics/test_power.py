"""The smallest difference that cases can show: against the power of the t test, as scipy computes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kantan_agents.lab.evaluation.statistics import (
    detectable_difference,
    fewest_cases,
    more_cases,
    paired_p,
)


def values(count: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=count)


@pytest.mark.parametrize("metrics", [1, 5])
@pytest.mark.parametrize("count", [8, 20, 200])
def test_a_detectable_difference_is_found_with_the_wanted_power(count: int, metrics: int) -> None:
    """On average over samples, whose standard error is as uncertain as that of these values."""
    given_values = values(count)
    effect = detectable_difference(given_values, metrics=metrics)
    assert effect is not None
    t = stats.t.ppf(1 - 0.025 / metrics, count - 1)
    assert stats.nct.cdf(effect / stats.sem(given_values), count - 1, t) == pytest.approx(0.8, abs=0.005)


@given(st.integers(6, 60), st.floats(0.02, 3.0))
def test_more_cases_find_the_wanted_difference_and_one_less_does_not(count: int, wanted: float) -> None:
    given_values = values(count)
    more = more_cases(given_values, wanted)
    assert more is not None
    assert more_cases(given_values, -wanted) == more
    spread = float(np.std(given_values, ddof=1))

    def needed(total: int) -> float:
        return float(stats.nct.ppf(0.8, count - 1, stats.t.ppf(0.975, total - 1)) * spread / np.sqrt(total))

    assert needed(count + more) <= wanted * 1.01  # the quantile is approximate
    assert more == 0 or needed(count + more - 1) > wanted * 0.99


@pytest.mark.parametrize("metrics", [1, 2, 5, 20])
def test_metrics_that_are_tested_together_share_alpha(metrics: int) -> None:
    given_values = values(30)
    together = more_cases(given_values, 0.3, metrics=metrics)
    assert together == more_cases(given_values, 0.3, alpha=0.05 / metrics)
    assert detectable_difference(given_values, metrics=metrics) == detectable_difference(
        given_values, alpha=0.05 / metrics
    )


def test_the_fewest_cases_are_those_whose_lowest_p_reaches_alpha() -> None:
    assert [fewest_cases(metrics=metrics) for metrics in (1, 2, 3, 5, 10)] == [6, 7, 7, 8, 9]
    for metrics in range(1, 30):
        fewest = fewest_cases(metrics=metrics)
        one, other = (paired_p([0] * count, [1] * count).p for count in (fewest, fewest - 1))
        assert one * metrics <= 0.05 < other * metrics


def test_steps_of_yes_or_no_take_more_cases_than_scores_that_vary_alike() -> None:
    answers = np.array([1.0] * 6 + [0.0] * 18)
    scores = np.where(answers > 0, 1.0 + np.linspace(-0.02, 0.02, 24), 0.0)
    more, fewer = more_cases(answers, 0.2), more_cases(scores, 0.2)
    assert more is not None and fewer is not None
    assert more == pytest.approx(fewer + 1 / 0.2, abs=1)


def test_no_more_cases_are_needed_for_what_can_be_shown_already() -> None:
    given_values = values(40)
    effect = detectable_difference(given_values)
    assert effect is not None
    assert more_cases(given_values, effect * 1.001) == 0
    assert more_cases(given_values, effect / 2) == pytest.approx(3 * 40, rel=0.05)


def test_conversations_count_as_one_each() -> None:
    few = values(12)
    clusters = np.repeat(np.arange(12), 5)
    together = detectable_difference(few[clusters], clusters.tolist())
    assert together == pytest.approx(detectable_difference(few))
    more = more_cases(few[clusters], 0.4, clusters.tolist())
    alone = more_cases(few, 0.4)
    assert alone is not None
    assert more == 5 * alone


@given(st.integers(2, 40), st.integers(2, 40), st.sampled_from([0.2, 0.05, 0.01, 0.001]))
def test_a_difference_can_be_shown_only_if_the_test_can_reach_alpha(
    same: int, differing: int, alpha: float
) -> None:
    """However large the difference: the p of the test is lowest if all cases favour one side."""
    before = np.zeros(same + differing)
    after = np.concatenate([np.zeros(same), np.ones(differing)])
    lowest = paired_p(before, after).p
    assert (detectable_difference(after, alpha=alpha) is not None) == (lowest <= alpha)
    more = more_cases(after, 1e6, alpha=alpha)
    if more is None:  # too few to say how much they vary
        assert same + differing < fewest_cases(alpha=alpha)
        return
    assert (more == 0) == (lowest <= alpha)
    total = same + differing + more
    likely = int(differing * total / (same + differing) + 1e-9)
    assert paired_p(np.zeros(total), np.arange(total) < likely).p <= alpha


@pytest.mark.parametrize(("count", "metrics", "more"), [(2, 1, None), (5, 1, None), (6, 1, 0), (7, 5, None)])
def test_fewer_cases_than_a_verdict_takes_show_nothing(count: int, metrics: int, more: int | None) -> None:
    given_values = 1.0 + np.arange(count) / 100
    assert (detectable_difference(given_values, metrics=metrics) is None) == (more is None)
    assert more_cases(given_values, 1.0, metrics=metrics) == more
    conversations = np.repeat(np.arange(count), 3)
    assert more_cases(given_values[conversations], 1.0, conversations.tolist(), metrics=metrics) == more


@pytest.mark.parametrize("given_values", [[0.3], [0.5, 0.5, 0.5], [0.0, 0.0]])
def test_one_case_or_no_variance_shows_nothing(given_values: list[float]) -> None:
    assert detectable_difference(given_values) is None
    assert more_cases(given_values, 0.1) is None


def test_no_number_of_cases_shows_a_difference_of_zero() -> None:
    assert more_cases(values(20), 0.0) is None
    assert more_cases(values(20), 1e-9) is None


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: detectable_difference([1.0, 2.0], power=1.0),
        lambda: detectable_difference([1.0, 2.0], alpha=0.0),
        lambda: more_cases([1.0, 1.0], 0.1, alpha=-1.0),
        lambda: more_cases([1.0, 2.0], float("nan")),
        lambda: more_cases([1.0, 2.0], 0.1, metrics=0),
        lambda: fewest_cases(alpha=1.0),
    ],
)
def test_misuse_is_a_value_error(misuse: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        misuse()
