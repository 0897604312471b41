"""The interval of the difference: it agrees with the test, shrinks, and contains the truth."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from benchmarks.rollout_situations import GRADED, SHARES
from benchmarks.rollout_situations import drawn as drawn_metric
from kantan_agents.lab.rollout.evidence import DifferenceInterval, difference_interval

from .rollouts import ROLLOUTS, Rollout, difference, drawn


def interval(rollout: Rollout, alpha: float = 0.05) -> DifferenceInterval | None:
    return difference_interval(*rollout, lowest=0.0, highest=1.0, alpha=alpha)


@given(ROLLOUTS, st.sampled_from([0.05, 0.5]))
@example(drawn(54, 269), 0.5)
def test_margins_outside_are_those_that_are_rejected(rollout: Rollout, alpha: float) -> None:
    found = interval(rollout, alpha)
    if found is None:
        assert not ((rollout.share > 0) & (rollout.share < 1)).any()
        return
    values, is_new, share = rollout
    step = 0.05 * max(0.0, found.high - found.low) + 1e-3  # in the example, the bounds are crossed
    for margin, is_rejected in ((found.low - 1e-9, True), (found.low + step, False)):
        if abs(margin) < 1:
            assert difference(values, is_new, share, margin).rejects(alpha / 2) == is_rejected
    for margin, is_rejected in ((found.high + 1e-9, True), (found.high - step, False)):
        if abs(margin) < 1:
            assert difference(1 - values, is_new, share, -margin).rejects(alpha / 2) == is_rejected


@given(ROLLOUTS)
def test_swapping_the_arms_mirrors_it(rollout: Rollout) -> None:
    values, is_new, share = rollout
    found, swapped = interval(rollout), interval(Rollout(values, ~is_new, 1 - share))
    if found is None:
        assert swapped is None
        return
    assert swapped is not None
    mirrored = (-swapped.difference, -swapped.high, -swapped.low)
    assert attrs.astuple(found)[:3] == pytest.approx(mirrored, abs=2e-3)


def test_it_shrinks_and_contains_the_truth() -> None:
    random = np.random.default_rng(0)
    share = SHARES["ramp"](4_000)
    control = GRADED.control(4_000, drifts=True)
    values, is_new = drawn_metric(random, GRADED, share, control, control + 0.1)
    whole = Rollout(values, is_new, share)
    found = [interval(Rollout(*(one[:size] for one in whole))) for size in (50, 500, 2_000, 4_000)]
    known = [one for one in found if one is not None]
    assert len(known) == 4
    assert all(one.low <= 0.1 <= one.high for one in known)
    widths = [one.high - one.low for one in known]
    assert widths[0] > 2 * widths[1] > 2 * widths[2]
    assert known[-1].low > 0
    assert known[-1].difference == pytest.approx(0.1, abs=0.03)
    assert known[-1].observations == 3_200  # the last fifth has only the new arm


def test_without_observations_there_is_none() -> None:
    assert difference_interval([], [], [], lowest=0, highest=1) is None
    assert difference_interval([0.5], [True], [1.0], lowest=0, highest=1) is None
