"""The evidence for a difference of means: what is refused, and that the baseline and the margin help."""

from __future__ import annotations

import numpy as np
import pytest

from kantan_agents.lab.rollout.evidence import mean_difference

from .rollouts import difference, drawn


def scores(effect: float, share: float = 0.5, size: int = 4_000) -> tuple[object, object, object]:
    random = np.random.default_rng(1)
    is_new = random.random(size) < share
    return (random.random(size) < 0.7 + effect * is_new).astype(float), is_new, np.full(size, share)


def test_a_difference_is_found_and_its_opposite_is_not() -> None:
    values, is_new, share = scores(0.1)
    assert difference(values, is_new, share).rejects(0.001)
    assert not difference(1.0 - values, is_new, share).rejects(0.5)  # type: ignore[operator]


def test_a_difference_within_the_margin_is_not_found() -> None:
    assert not difference(*scores(0.1), margin=0.15).rejects(0.05)
    assert difference(*scores(0.0), margin=-0.1).rejects(0.05)  # not worse by 0.1


def test_values_far_from_0_do_not_matter() -> None:
    values, is_new, share = drawn(3, effect=0.2)
    far = mean_difference(values + 1_000, is_new, share, lowest=1_000, highest=1_001)
    assert far.path == pytest.approx(difference(values, is_new, share).path, abs=1e-6)


def test_a_range_three_times_as_wide_costs_less_than_half_of_the_evidence() -> None:
    random = np.random.default_rng(1)
    is_new = random.random(4_000) < 0.5
    values, share = random.beta(20, 20, 4_000) + 0.015 * is_new, np.full(4_000, 0.5)
    wide = mean_difference(values, is_new, share, lowest=-1, highest=2)
    narrow = difference(np.clip(values, 0, 1), is_new, share)
    assert wide.highest > 0.5 * narrow.highest > 4


@pytest.mark.parametrize(
    ("lowest", "highest", "margin", "text"),
    [
        (1.0, 0.0, 0.0, "margin must be smaller than the range"),
        (0.0, np.inf, 0.0, "lowest must be below highest"),
        (0.0, 0.4, 0.0, "a value is not from 0.0 to 0.4"),
        (0.6, 1.0, 0.0, "a value is not from 0.6 to 1.0"),
        (0.0, 1.0, 1.0, "margin must be smaller than the range"),
        (0.0, 1.0, np.nan, "margin must be smaller than the range"),
    ],
)
def test_misuse_is_refused(lowest: float, highest: float, margin: float, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        mean_difference(*drawn(0), lowest=lowest, highest=highest, margin=margin)
