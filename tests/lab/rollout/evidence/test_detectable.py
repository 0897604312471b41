"""How many more observations it takes: about as many as it then took, and None where that is hopeless."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.rollout_situations import YES_OR_NO, drawn
from kantan_agents.lab.rollout.evidence import mean_difference, more_observations


def test_it_is_about_what_it_takes_if_the_estimate_is_right() -> None:
    ratios = []
    random = np.random.default_rng(0)
    share = np.full(40_000, 0.5)
    for _ in range(60):
        level = np.full(40_000, 0.7)
        values, is_new = drawn(random, YES_OR_NO, share, level, level + 0.05)
        at = mean_difference(values, is_new, share, lowest=0, highest=1).rejected_at(0.05)
        assert at is not None
        found = more_observations(values[:1_000], is_new[:1_000], share[:1_000], lowest=0, highest=1)
        if at > 1_000 and found is not None:
            ratios.append(found / (at - 1_000))
    assert 0.3 < np.median(ratios) < 3.0


def test_a_smaller_share_or_a_stricter_alpha_takes_longer() -> None:
    random = np.random.default_rng(3)
    level, share = np.full(400, 0.6), np.full(400, 0.5)
    values, is_new = drawn(random, YES_OR_NO, share, level, level + 0.1)

    def more(alpha: float = 0.05, future_share: float | None = None) -> int:
        found = more_observations(
            values, is_new, share, lowest=0, highest=1, alpha=alpha, future_share=future_share
        )
        assert found is not None
        return found

    assert 0 < more() == more(future_share=0.5)
    assert more(future_share=0.1) > 2 * more()
    assert more(alpha=0.001) > 1.5 * more()


def test_it_is_0_once_rejected() -> None:
    is_new = np.tile([True, False], 200)
    assert more_observations(is_new * 1.0, is_new, np.full(400, 0.5), lowest=0, highest=1) == 0


@pytest.mark.parametrize(
    ("values", "size"),
    [
        ([0.0, 1.0], 200),  # worse
        ([0.5, 0.5], 200),  # all equal
        ([1.0, 0.0], 10),  # too few of each
        ([0.5001, 0.5, 1.0, 1.0, 0.0, 0.0], 600),  # too small
    ],
)
def test_it_is_none_where_it_is_hopeless(values: list[float], size: int) -> None:
    is_new = np.tile([True, False], size // 2)
    found = np.tile(values, size // len(values))
    assert more_observations(found, is_new, np.full(size, 0.5), lowest=0, highest=1, alpha=1e-9) is None


def test_a_future_share_without_a_comparison_is_refused() -> None:
    with pytest.raises(ValueError, match="future_share must be between 0 and 1"):
        more_observations([0.5], [True], [0.5], lowest=0, highest=1, future_share=1.0)
