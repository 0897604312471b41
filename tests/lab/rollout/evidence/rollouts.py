"""Random rollouts for the tests: shares, arms and values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from kantan_agents.lab.rollout.evidence import (
    Evidence,
    mean_difference,
    relative_increase,
    sample_ratio,
    tail_increase,
)

Test = Callable[[Any, Any, Any], Evidence]


def difference(values: Any, is_new: Any, share: Any, margin: float = 0.0) -> Evidence:
    return mean_difference(values, is_new, share, lowest=0.0, highest=1.0, margin=margin)


def cost(values: Any, is_new: Any, share: Any) -> Evidence:
    return relative_increase(values, is_new, share, factor=1.1)


def latency(values: Any, is_new: Any, share: Any) -> Evidence:
    return tail_increase(values, is_new, share, factor=1.2, quantile=0.8)


def ratio(_values: Any, is_new: Any, share: Any) -> Evidence:
    return sample_ratio(is_new, share)


TESTS: dict[str, Test] = {"difference": difference, "cost": cost, "latency": latency, "ratio": ratio}


class Rollout(NamedTuple):
    values: Any
    is_new: Any
    share: Any


def drawn(seed: int, size: int = 200, effect: float = 0.0) -> Rollout:
    """Draw a rollout with a share that changes, some of it 0 or 1, and values from 0 to 1."""
    random = np.random.default_rng(seed)
    share = np.repeat(random.choice([0.0, 0.1, 0.3, 0.5, 0.9, 1.0], 5), -(-size // 5))[:size]
    is_new = random.random(size) < share
    return Rollout(np.clip(random.beta(2, 2, size) + effect * is_new, 0, 1), is_new, share)


ROLLOUTS = st.builds(drawn, st.integers(0, 10_000), st.integers(0, 300), st.sampled_from([0.0, 0.2]))
