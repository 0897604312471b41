"""The tests of a difference: against scipy and enumeration, and what must not change them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kantan_agents.lab.evaluation.statistics import holm, mcnemar, paired_p, sign_flip, sign_flip_p
from kantan_agents.lab.evaluation.statistics.holm import needed_p
from tests.lab.evaluation.statistics.strategies import FEW, PAIRS, SCORES

Cases = list[tuple[float, float, int]]
BITS = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40)


@given(st.lists(SCORES, min_size=1, max_size=9))
def test_few_cases_are_enumerated(values: list[float]) -> None:
    patterns = itertools.product((1, -1), repeat=len(values))
    sums = [abs(sum(sign * value for sign, value in zip(signs, values, strict=True))) for signs in patterns]
    assert sign_flip_p(values) == np.mean([one >= abs(sum(values)) for one in sums])


@given(st.lists(st.floats(-10, 10), min_size=2, max_size=8))
def test_it_agrees_with_the_permutation_test_of_scipy(values: list[float]) -> None:
    given_values = np.round(values, 6)
    found = stats.permutation_test(
        (given_values,), np.mean, permutation_type="samples", n_resamples=np.inf, alternative="two-sided"
    )
    assert sign_flip_p(given_values) == pytest.approx(found.pvalue)


@given(st.lists(st.tuples(SCORES, st.integers(0, 5)), min_size=1, max_size=30))
def test_cases_of_a_conversation_flip_together(cases: list[tuple[float, int]]) -> None:
    totals: dict[int, float] = {}
    for value, cluster in cases:
        totals[cluster] = totals.get(cluster, 0.0) + value
    values, clusters = zip(*cases, strict=True)
    assert sign_flip_p(values, clusters) == sign_flip_p(list(totals.values()))


def test_random_patterns_agree_with_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(3).normal(0.4, 1.0, size=15)
    exact = sign_flip_p(values)
    monkeypatch.setattr(sign_flip, "MOST_ENUMERATED", 0)
    drawn = sign_flip_p(values, resamples=40_000)
    assert drawn == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 40_000))


def test_random_patterns_never_give_zero() -> None:
    assert sign_flip_p(np.ones(200), resamples=999) == 1 / 1_000


def test_cases_without_a_difference_do_not_count() -> None:
    assert sign_flip_p([0.5, 1.0, 0.25]) == sign_flip_p([0.5, 1.0, 0.25, *[0.0] * 500])


def test_sums_that_differ_by_rounding_are_equal() -> None:
    assert sign_flip_p([0.1, 0.2, -0.3]) == 1.0


@pytest.mark.parametrize("clustered", [False, True])
@given(data=st.data(), cases=PAIRS)
def test_neither_order_nor_sides_matter(clustered: bool, data: st.DataObject, cases: Cases) -> None:
    def p(of: Cases) -> Any:
        a, b, clusters = zip(*of, strict=True)
        return paired_p(a, b, clusters if clustered else None, resamples=FEW)

    assert p(cases) == p(data.draw(st.permutations(cases)))
    assert p(cases) == p([(b, a, cluster) for a, b, cluster in cases])
    assert p([(a, a, cluster) for a, _, cluster in cases]).p == 1.0


@given(PAIRS, st.sampled_from([0.5, 4.0]))
def test_another_scale_changes_no_p(cases: Cases, scale: float) -> None:
    values = np.array([b - a for a, b, _ in cases])
    assert sign_flip_p(values, resamples=FEW) == sign_flip_p(scale * values, resamples=FEW)


@given(BITS)
def test_mcnemar_is_the_binomial_test_of_cases_that_disagree(cases: list[tuple[bool, bool]]) -> None:
    a, b = zip(*cases, strict=True)
    only_a, only_b = sum(x and not y for x, y in cases), sum(y and not x for x, y in cases)
    expected = stats.binomtest(only_a, only_a + only_b).pvalue if only_a + only_b else 1.0
    assert mcnemar(a, b) == pytest.approx((only_a, only_b, expected))


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12))
def test_mcnemar_is_the_sign_flip_test_of_yes_and_no(cases: list[tuple[bool, bool]]) -> None:
    a, b = np.array(cases, dtype=float).T
    assert mcnemar(a, b).p == pytest.approx(sign_flip_p(b - a))


def test_the_test_fits_the_metric() -> None:
    a, b = [0, 1, 1, 0, 1], [1, 1, 1, 1, 1]
    assert paired_p(a, b) == (0.5, "mcnemar")
    assert paired_p(a, b, ["v", "w", "x", None, None]).method == "mcnemar"
    assert paired_p(a, b, ["x", "x", "y", "z", "z"]).method == "sign flip"
    assert paired_p([0, 1, 0.5, 0, 1], b).method == "sign flip"


@given(st.lists(st.floats(0.0, 1.0), max_size=12))
def test_holm_is_monotone_and_never_below_what_it_adjusts(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(raw <= one <= 1.0 for raw, one in zip(p_values, adjusted, strict=True))
    ranked = sorted(zip(p_values, adjusted, strict=True))
    assert [one for _, one in ranked] == sorted(adjusted)


@given(st.lists(st.floats(0.0, 1.0), max_size=8), st.floats(0.001, 0.5))
def test_the_needed_p_is_the_largest_that_holm_finds_beside_others(others: list[float], alpha: float) -> None:
    needed = needed_p(others, alpha)
    assert holm([needed * (1 - 1e-9), *others])[0] <= alpha < holm([needed * (1 + 1e-9), *others])[0]


def test_holm_adjusts_as_in_the_paper() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.02]) == [0.02]


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: sign_flip_p([]),
        lambda: sign_flip_p([1.0, np.nan]),
        lambda: sign_flip_p([1.0], resamples=0),
        lambda: paired_p([1.0], [1.0, 2.0]),
        lambda: paired_p([], []),
        lambda: mcnemar([0, 1], [0]),
        lambda: mcnemar([0, 2], [0, 1]),
        lambda: holm([0.5, np.nan]),
        lambda: holm([1.5]),
    ],
)
def test_misuse_is_a_value_error(misuse: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        misuse()
