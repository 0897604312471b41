"""Pass rates of results that depend on one another: special cases and invariants."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.lab.evaluation.statistics import clopper_pearson, proportion

VALUES = st.lists(st.booleans(), min_size=1, max_size=40)
CLUSTERED = st.lists(
    st.tuples(st.floats(0.0, 1.0), st.sampled_from(["a", "b", "c", None])), min_size=2, max_size=25
)


@given(VALUES)
def test_independent_yes_or_no_has_the_exact_interval(values: list[bool]) -> None:
    found = proportion(values)
    assert found.units == len(values)
    assert found.effective == pytest.approx(len(values))
    assert found.interval == pytest.approx(clopper_pearson(sum(values), len(values)))


@given(st.lists(st.booleans(), min_size=2, max_size=15), st.integers(1, 6))
def test_equal_repeats_count_as_one(values: list[bool], repeats: int) -> None:
    clusters = [number for number in range(len(values)) for _ in range(repeats)]
    found = proportion([value for value in values for _ in range(repeats)], clusters)
    assert found.interval == pytest.approx(clopper_pearson(sum(values), len(values)))


def test_repeats_that_differ_count_for_more() -> None:
    values = [number % 5 > 0 for number in range(100)]
    alike, different = (
        proportion(sorted(values), [n // 10 for n in range(100)]),
        proportion(values, [n // 10 for n in range(100)]),
    )
    assert alike.effective == pytest.approx(10.0)
    assert 20.0 < different.effective < 100.0


@given(CLUSTERED, st.randoms(use_true_random=False))
def test_it_is_inside_0_and_1_mirrors_and_ignores_the_order(
    pairs: list[tuple[float, str | None]], order: Any
) -> None:
    values, clusters = zip(*pairs, strict=True)
    found = proportion(values, clusters)
    if found.interval is None:
        assert found.units == 1
        return
    low, high = found.interval
    assert 0.0 <= low <= found.value + 1e-9
    assert found.value - 1e-9 <= high <= 1.0
    mirrored = proportion([1.0 - value for value in values], clusters)
    assert mirrored.interval == pytest.approx((1.0 - high, 1.0 - low), abs=1e-6)
    shuffled = order.sample(pairs, len(pairs))
    assert proportion(*zip(*shuffled, strict=True)).interval == pytest.approx(found.interval, abs=1e-6)


def test_one_cluster_has_no_interval() -> None:
    assert proportion([1, 0, 1], ["a"] * 3)[1:3] == (None, 1)
    assert proportion([1], ["a"]).interval == pytest.approx(clopper_pearson(1, 1))


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: proportion([]),
        lambda: proportion([2.0]),
        lambda: proportion([0.5], ["a", "b"]),
        lambda: proportion([0.5], level=1.0),
    ],
)
def test_misuse_is_a_value_error(misuse: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        misuse()
