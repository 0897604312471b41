"""Cost and latency: factors, caps, and when there is no bet yet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kantan_agents.lab.rollout.evidence import relative_increase, tail_increase


def heavy(factor: float, size: int = 6_000, share: float = 0.5) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(2)
    is_new = random.random(size) < share
    return random.lognormal(size=size) * np.where(is_new, factor, 1.0), is_new, np.full(size, share)


@pytest.mark.parametrize("test", [relative_increase, tail_increase])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_a_rise_above_the_factor_is_found_and_one_below_is_not(test: Any, share: float) -> None:
    assert test(*heavy(2.0, share=share), factor=1.2).rejects(0.01)
    assert not test(*heavy(1.1, share=share), factor=1.2).rejects(0.05)
    assert not test(*heavy(0.5, share=share), factor=1.0).rejects(0.05)


def test_one_enormous_cost_does_not_decide() -> None:
    values, is_new, share = heavy(1.0)
    before = relative_increase(values, is_new, share, factor=1.0)
    values[np.flatnonzero(is_new)[1_000]] = 1e9
    after = relative_increase(values, is_new, share, factor=1.0)
    assert after.current == pytest.approx(before.current, abs=0.5)


def test_there_is_no_bet_before_21_costs_or_while_all_are_0() -> None:
    values, is_new, share = heavy(2.0)
    path = relative_increase(values, is_new, share, factor=1.2).path
    assert not path[:20].any()
    assert path[20]
    assert not relative_increase(np.zeros(100), is_new[:100], share[:100], factor=1.2).path.any()


@pytest.mark.parametrize(("quantile", "fewest"), [(0.95, 20), (0.9, 10), (0.5, 2)])
def test_there_is_no_bet_before_enough_of_the_control_is_known(quantile: float, fewest: int) -> None:
    values, is_new, share = heavy(2.0)
    path = tail_increase(values, is_new, share, factor=1.2, quantile=quantile).path
    first = np.flatnonzero(~is_new)[fewest - 1] + 1
    assert not path[:first].any()
    assert path[first]


@pytest.mark.parametrize("test", [relative_increase, tail_increase])
@pytest.mark.parametrize("factor", [0.0, -1.0, np.nan, np.inf])
def test_a_factor_that_is_not_above_0_is_refused(test: Any, factor: float) -> None:
    with pytest.raises(ValueError, match="factor must be a finite number above 0"):
        test(*heavy(1.0), factor=factor)


@pytest.mark.parametrize("test", [relative_increase, tail_increase])
def test_a_negative_value_is_refused(test: Any) -> None:
    values, is_new, share = heavy(1.0)
    with pytest.raises(ValueError, match="values must be at least 0"):
        test(-values, is_new, share, factor=1.2)


@pytest.mark.parametrize("quantile", [0.0, 1.0, np.nan])
def test_a_quantile_that_is_not_between_0_and_1_is_refused(quantile: float) -> None:
    with pytest.raises(ValueError, match="quantile must be between 0 and 1"):
        tail_increase(*heavy(1.0), factor=1.2, quantile=quantile)
