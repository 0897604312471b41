"""The interval of a mean difference: against other bootstraps, and what must not change it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from kantan_agents.lab.evaluation.statistics import paired_difference, resampling
from kantan_agents.lab.evaluation.statistics.independent_units import units_of
from tests.lab.evaluation.statistics.strategies import FEW, PAIRS

Cases = list[tuple[float, float, int]]


def difference(cases: Cases, *, clustered: bool = False, resamples: int = FEW) -> Any:
    values = [b - a for a, b, _ in cases]
    clusters = [cluster for *_, cluster in cases] if clustered else None
    return paired_difference(values, clusters, resamples=resamples)


@pytest.mark.parametrize("clustered", [False, True])
@given(data=st.data(), cases=PAIRS)
def test_the_order_of_the_cases_does_not_matter(clustered: bool, data: st.DataObject, cases: Cases) -> None:
    shuffled = data.draw(st.permutations(cases))
    assert difference(cases, clustered=clustered) == difference(shuffled, clustered=clustered)


@pytest.mark.parametrize("clustered", [False, True])
@given(cases=PAIRS)
def test_swapping_a_and_b_flips_signs_and_nothing_else(clustered: bool, cases: Cases) -> None:
    here = difference(cases, clustered=clustered)
    there = difference([(b, a, cluster) for a, b, cluster in cases], clustered=clustered)
    flipped = here.interval and here.interval.negated()
    assert there == here._replace(mean=-here.mean, interval=flipped)


@given(cases=PAIRS)
def test_comparing_a_with_itself_shows_nothing(cases: Cases) -> None:
    result = difference([(a, a, cluster) for a, _, cluster in cases])
    assert (result.mean, result.interval, result.cases) == (0.0, None, len(cases))


@given(cases=PAIRS, scale=st.sampled_from([0.25, 2.0, 64.0]))
def test_another_scale_changes_the_interval_alike(cases: Cases, scale: float) -> None:
    here = difference(cases)
    there = difference([(scale * a + 1, scale * b + 1, cluster) for a, b, cluster in cases])
    assert there.mean == pytest.approx(scale * here.mean)
    assert (there.interval is None) is (here.interval is None)
    if here.interval:
        assert there.interval == pytest.approx([scale * bound for bound in here.interval])


@given(cases=PAIRS)
def test_conversations_of_one_case_are_cases(cases: Cases) -> None:
    values = [b - a for a, b, _ in cases]
    alone = paired_difference(values, resamples=FEW)
    assert paired_difference(values, [*range(len(values))], resamples=FEW) == alone
    assert paired_difference(values, [None] * len(values), resamples=FEW) == alone


@given(cases=PAIRS)
def test_the_interval_contains_the_mean(cases: Cases) -> None:
    result = difference(cases, clustered=True)
    assert result.interval is None or result.interval.low < result.mean < result.interval.high


def test_the_same_seed_gives_the_same_interval() -> None:
    values = np.random.default_rng(1).exponential(size=40)
    assert paired_difference(values, seed=3) == paired_difference(values, seed=3)
    assert paired_difference(values, seed=3) != paired_difference(values, seed=4)


@pytest.mark.parametrize("seed", range(3))
def test_it_agrees_with_the_bca_bootstrap_of_scipy_on_many_cases(seed: int) -> None:
    values = np.random.default_rng(seed).normal(0.1, 1.0, size=400)
    bca = stats.bootstrap(
        (values,), np.mean, method="BCa", rng=np.random.default_rng(seed)
    ).confidence_interval
    found = paired_difference(values)
    assert found.interval == pytest.approx((bca.low, bca.high), abs=0.05 * (bca.high - bca.low))
    assert found.standard_error == pytest.approx(stats.sem(values))


@pytest.mark.parametrize("count", [30, 300, 3_000])
def test_it_agrees_with_a_studentised_bootstrap_written_out(count: int) -> None:
    random = np.random.default_rng(5)
    values = random.exponential(size=count)
    mean, error = values.mean(), stats.sem(values)
    drawn = values[random.integers(count, size=(3_000, count))]
    studentised = (drawn.mean(axis=1) - mean) / stats.sem(drawn, axis=1)
    t = stats.t.ppf(0.975, count - 1)
    further = (2 * t**2 + 1) / 3 * stats.skew(values) / np.sqrt(count)  # the tail is on the right
    low = mean - max(t, np.quantile(studentised, 0.975)) * error
    high = mean - min(-t, np.quantile(studentised, 0.025)) * error + further * error
    assert paired_difference(values).interval == pytest.approx((low, high), abs=0.06 * (high - low))


def test_weights_give_the_interval_that_drawing_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(6)
    values, clusters = random.exponential(size=450), random.integers(300, size=450).tolist()
    for clustered in (None, clusters):
        drawn = paired_difference(values, clustered).interval
        with monkeypatch.context() as patch:
            patch.setattr(resampling, "MOST_DRAWN", 0)
            weighted = paired_difference(values, clustered).interval
        assert drawn is not None
        assert weighted == pytest.approx(drawn, abs=0.02 * (drawn.high - drawn.low))
        assert weighted != drawn


def test_weights_have_the_moments_of_counts() -> None:
    weights = resampling._WEIGHTS - 1
    assert [np.mean(weights**power) for power in (1, 2, 3)] == pytest.approx([0, 1, 1], abs=1e-12)


def test_resampling_draws_units_with_replacement() -> None:
    columns = np.column_stack([np.ones(20), np.arange(20.0)])
    counts, sums = resampling.resampled_sums(columns, 4_000, seed=1).T
    assert (counts == 20).all()
    assert sums.mean() == pytest.approx(190, rel=0.02)
    assert sums.std() == pytest.approx(np.sqrt(20) * np.arange(20).std(), rel=0.05)


def test_cases_of_one_conversation_count_less() -> None:
    random = np.random.default_rng(2)
    clusters = np.repeat(np.arange(20), 10)
    values = random.normal(size=20)[clusters] + 0.1 * random.normal(size=200)
    together, alone = paired_difference(values, clusters.tolist()), paired_difference(values)
    assert (together.units, together.cases, alone.units) == (20, 200, 200)
    assert together.standard_error is not None
    assert alone.standard_error is not None
    assert together.standard_error > 2.5 * alone.standard_error


def test_the_error_of_conversations_is_that_of_a_ratio() -> None:
    units = units_of([1.0, 2.0, 3.0, 7.0, 1.0], ["x", "x", "y", "z", "z"])
    # Totals 3, 3, 8 of 2, 1, 2 cases; mean 2.8; residuals -2.6, 0.2, 2.4.
    assert units.mean == pytest.approx(2.8)
    assert units.standard_error == pytest.approx(np.sqrt(3 / 2 * (2.6**2 + 0.2**2 + 2.4**2)) / 5)


@pytest.mark.parametrize(
    ("values", "clusters", "why"),
    [
        ([0.3], None, "at least 10 independent cases"),
        ([0.1, 0.2, 0.9] * 3, None, "at least 10 independent cases"),
        ([0.1, 0.2, 0.9] * 9, ["x", "y", "z"] * 9, "at least 10 independent cases"),
        ([0.0] * 30, None, "no case differs"),
        ([0.1 + 0.2, 0.3] * 5, None, "all differences are equal"),
        ([0.0] * 19 + [-1.0], None, "at least 2 cases must differ"),
    ],
)
def test_what_shows_no_variance_has_no_interval(values: list[float], clusters: Any, why: str) -> None:
    result = paired_difference(values, clusters)
    assert (result.interval, result.standard_error) == (None, None)
    assert result.missing is not None and why in result.missing
    assert result.mean == pytest.approx(np.mean(values))


def test_a_long_tail_moves_the_bound_on_its_side() -> None:
    values = np.array([0.0] * 8 + [1.0, 8.0])
    found, turned = paired_difference(values), paired_difference(-values)
    assert found.interval is not None and turned.interval is not None and found.missing is None
    assert found.interval.high - found.mean > 2 * (found.mean - found.interval.low)
    assert turned.interval == found.interval.negated()


@pytest.mark.parametrize(
    ("values", "options"),
    [
        ([], {}),
        ([[1.0, 2.0]], {}),
        ([1.0, np.nan], {}),
        ([1.0, np.inf], {}),
        ([1.0, 2.0], {"clusters": ["x"]}),
        ([1.0, 2.0], {"level": 1.0}),
        ([1.0, 2.0], {"resamples": 0}),
    ],
)
def test_misuse_is_a_value_error(values: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        paired_difference(values, **options)
