"""The check of the sample ratio finds losses of either arm, and arms that are impossible."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kantan_agents.lab.rollout.evidence import sample_ratio


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("lost", [True, False])
def test_a_loss_of_a_tenth_of_an_arm_is_found(share: float, lost: bool) -> None:
    random = np.random.default_rng(0)
    is_new = random.random(60_000) < share
    remains = (is_new != lost) | (random.random(60_000) < 0.9)
    assert not sample_ratio(is_new, np.full(60_000, share)).rejects(0.01)
    left = is_new[remains]
    assert sample_ratio(left, np.full(len(left), share)).rejects(0.01)


@pytest.mark.parametrize(("arm", "share"), [(True, 0.0), (False, 1.0)])
def test_an_impossible_arm_is_infinite_evidence(arm: bool, share: float) -> None:
    found = sample_ratio([True, False, arm, True], [0.5, 0.5, share, 0.5])
    assert np.isfinite(found.path[:2]).all()
    assert found.path[2:] == pytest.approx([np.inf, np.inf])
    assert found.p == 0.0
    assert found.rejected_at(1e-9) == 3


def test_no_units_say_nothing() -> None:
    nothing: Any = []
    assert sample_ratio(nothing, nothing).highest == 0.0
