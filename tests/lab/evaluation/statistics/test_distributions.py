"""The distributions agree with scipy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kantan_agents.lab.evaluation.statistics.distributions import (
    beta_cdf,
    beta_quantile,
    fair_coin_p,
    noncentral_t_quantile,
    t_quantile,
)

SHAPES = st.floats(0.05, 5_000.0)
PROBABILITIES = st.floats(1e-6, 1 - 1e-6)


@given(st.floats(0.0, 1.0), SHAPES, SHAPES)
def test_cumulative_probabilities_of_the_beta_distribution(x: float, a: float, b: float) -> None:
    assert beta_cdf(x, a, b) == pytest.approx(stats.beta.cdf(x, a, b), rel=1e-8, abs=1e-12)


@given(PROBABILITIES, st.integers(1, 500), st.integers(1, 500))
def test_quantiles_of_the_beta_distribution(probability: float, a: int, b: int) -> None:
    assert beta_quantile(probability, a, b) == pytest.approx(stats.beta.ppf(probability, a, b), rel=1e-8)


@given(st.floats(0.0005, 0.9995), st.floats(1.0, 20_000.0))
def test_quantiles_of_the_t_distribution(probability: float, freedom: float) -> None:
    expected = stats.t.ppf(probability, freedom)
    assert t_quantile(probability, freedom) == pytest.approx(expected, rel=1e-7, abs=1e-12)


@given(st.integers(0, 3_000), st.integers(0, 3_000))
def test_a_fair_coin(heads: int, tails: int) -> None:
    expected = stats.binomtest(heads, heads + tails).pvalue if heads + tails else 1.0
    assert fair_coin_p(heads, tails) == pytest.approx(expected, rel=1e-8, abs=1e-280)


@pytest.mark.parametrize("freedom", [5, 9, 49, 999])
@pytest.mark.parametrize("noncentrality", [2.0, 2.8])
@pytest.mark.parametrize("probability", [0.5, 0.8, 0.9])
def test_quantiles_of_the_noncentral_t_distribution(
    probability: float, freedom: int, noncentrality: float
) -> None:
    expected = stats.nct.ppf(probability, freedom, noncentrality)
    assert noncentral_t_quantile(probability, freedom, noncentrality) == pytest.approx(expected, rel=0.015)


def test_too_few_degrees_of_freedom_for_a_high_power_give_infinity() -> None:
    assert noncentral_t_quantile(0.999, 1, 2.0) == float("inf")


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: beta_cdf(1.1, 1, 1),
        lambda: beta_cdf(0.5, 0, 1),
        lambda: beta_quantile(-0.1, 1, 1),
        lambda: t_quantile(1.0, 5),
        lambda: t_quantile(0.5, 0),
        lambda: fair_coin_p(-1, 2),
    ],
)
def test_values_out_of_range_are_refused(misuse: object) -> None:
    assert callable(misuse)
    with pytest.raises(ValueError, match=r".+"):
        misuse()
