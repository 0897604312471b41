"""What holds for every test of a rollout: of its path, its units and what it skips."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.lab.rollout.evidence import difference_interval

from .rollouts import ROLLOUTS, TESTS, Rollout, Test, cost, difference, drawn, latency, ratio

every_test = pytest.mark.parametrize("test", TESTS.values(), ids=TESTS)
with_values = pytest.mark.parametrize("test", [difference, cost, latency])


@every_test
@given(ROLLOUTS, st.integers(0, 300))
def test_what_follows_does_not_change_the_evidence_so_far(test: Test, rollout: Rollout, size: int) -> None:
    whole = test(*rollout)
    prefix = test(*(one[:size] for one in rollout))
    assert prefix.path == pytest.approx(whole.path[:size], abs=1e-9)


@every_test
@given(ROLLOUTS)
def test_the_summary_is_that_of_the_path(test: Test, rollout: Rollout) -> None:
    found = test(*rollout)
    assert found.path.shape == rollout.values.shape
    assert found.current == (found.path[-1] if len(found.path) else 0.0)
    assert found.highest == max([0.0, *found.path])
    assert found.p == pytest.approx(np.exp(-found.highest))
    at = found.rejected_at(0.3)
    assert found.rejects(0.3) == (at is not None)
    if at is not None:
        assert found.path[at - 1] >= -np.log(0.3)
        assert not test(*(one[: at - 1] for one in rollout)).rejects(0.3)


@every_test
@given(ROLLOUTS)
def test_units_without_a_random_arm_say_nothing(test: Test, rollout: Rollout) -> None:
    random = (rollout.share > 0) & (rollout.share < 1)
    whole = test(*rollout)
    assert whole.path[random] == pytest.approx(test(*(one[random] for one in rollout)).path)
    before = np.concatenate(([0.0], whole.path))[:-1]
    assert np.array_equal(whole.path[~random], before[~random])


@given(ROLLOUTS, st.sampled_from([0.0, 0.05, -0.1]))
def test_swapping_the_arms_is_mirroring_the_values(rollout: Rollout, margin: float) -> None:
    values, is_new, share = rollout
    mirrored = difference(1.0 - values, is_new, share, margin)
    swapped = difference(values, ~is_new, 1.0 - share, margin)
    assert swapped.path == pytest.approx(mirrored.path, abs=1e-6)


@given(ROLLOUTS)
def test_swapping_the_arms_does_not_change_the_ratio(rollout: Rollout) -> None:
    values, is_new, share = rollout
    assert ratio(values, ~is_new, 1.0 - share).path == pytest.approx(ratio(*rollout).path, abs=1e-6)


@pytest.mark.parametrize("test", [cost, latency])
@given(rollout=ROLLOUTS, power=st.integers(-30, 30))
def test_the_unit_of_cost_and_latency_does_not_matter(test: Test, rollout: Rollout, power: int) -> None:
    values, is_new, share = rollout
    scaled = test(values * 2.0**power, is_new, share)
    assert scaled.path == pytest.approx(test(values, is_new, share).path, abs=1e-6)


@with_values
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_a_number_is_refused(test: Test, bad: float) -> None:
    values, is_new, share = drawn(0)
    values[7] = bad
    with pytest.raises(ValueError, match="values must be finite numbers; leave out observations"):
        test(values, is_new, share)


@every_test
@pytest.mark.parametrize("bad", [np.nan, -0.1, 1.5])
def test_a_share_that_is_not_a_probability_is_refused(test: Test, bad: float) -> None:
    values, is_new, share = drawn(0)
    share[7] = bad
    with pytest.raises(ValueError, match="each share must be a probability from 0 to 1"):
        test(values, is_new, share)


@every_test
def test_shapes_that_differ_are_refused(test: Test) -> None:
    values, is_new, share = drawn(0)
    with pytest.raises(ValueError, match="lists of the same length"):
        test(values, is_new, share[1:])


@every_test
def test_arms_that_are_not_booleans_are_refused(test: Test) -> None:
    with pytest.raises(ValueError, match="is_new must be True or False"):
        test([0.5, 0.5], [0.0, 0.5], [0.5, 0.5])


@every_test
@pytest.mark.parametrize("alpha", [0.0, 1.0, np.nan])
def test_an_alpha_that_is_not_between_0_and_1_is_refused(test: Test, alpha: float) -> None:
    found = test(*drawn(0))
    with pytest.raises(ValueError, match="alpha must be between 0 and 1"):
        found.rejects(alpha)
    with pytest.raises(ValueError, match="alpha must be between 0 and 1"):
        difference_interval(*drawn(0), lowest=0, highest=1, alpha=alpha)


@every_test
def test_long_sequences_neither_overflow_nor_vanish(test: Test) -> None:
    random = np.random.default_rng(0)
    share: Any = np.full(200_000, 0.5)
    is_new = random.random(200_000) < 0.6  # more than planned
    for effect in (0.5, -0.5):
        values = 0.5 + effect * (is_new - 0.5) * random.random(200_000)
        path = test(values, is_new, share).path
        assert np.isfinite(path).all()
