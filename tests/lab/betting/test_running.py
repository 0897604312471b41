"""Running means and quantiles use earlier values only."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.lab.betting.running import running_mean, running_quantile

SEEDS = st.integers(0, 10_000)


@given(SEEDS, st.integers(0, 60))
def test_a_running_mean_is_that_of_earlier_values_and_the_start(seed: int, size: int) -> None:
    values = np.random.default_rng(seed).normal(size=size)
    expected = [np.mean([3.0, *values[:time]]) for time in range(size)]
    assert running_mean(values, 3.0) == pytest.approx(np.array(expected))


@given(SEEDS, st.integers(0, 300), st.sampled_from([0.5, 0.95]), st.sampled_from([1, 5, 20]))
def test_a_running_quantile_is_that_of_most_of_the_earlier_values(
    seed: int, size: int, quantile: float, fewest: int
) -> None:
    random = np.random.default_rng(seed)
    values, counts = random.normal(size=size), random.random(size) < 0.7
    found = running_quantile(values, counts, quantile, fewest)
    for time in range(size):
        known = values[:time][counts[:time]]
        if len(known) < fewest:
            assert np.isnan(found[time])
            continue
        allowed = range(max(fewest, int(len(known) / 1.1) - 1), len(known) + 1)
        assert any(found[time] == np.quantile(known[:count], quantile) for count in allowed)
