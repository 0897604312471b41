"""The wealth of the gamblers: against a direct product, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.lab.betting.wealth import EFFECTS, FIRST_WEALTH
from kantan_agents.lab.rollout.evidence import log_e_process


@given(st.integers(0, 10_000), st.integers(0, 40))
def test_it_is_the_average_of_products(seed: int, size: int) -> None:
    random = np.random.default_rng(seed)
    lowest, scale = -random.uniform(0.1, 2, size), random.uniform(0.1, 2, size)
    values = lowest + random.exponential(1, size)
    wealth = 0.0
    for effect, part in zip(EFFECTS, FIRST_WEALTH, strict=True):
        stakes = np.minimum(effect / scale, 0.9 / -lowest)
        wealth += part * float(np.prod(1 + stakes * values))
    assert log_e_process(values, lowest, scale).current == pytest.approx(np.log(wealth), abs=1e-9)


def test_the_first_wealth_is_one() -> None:
    assert sum(FIRST_WEALTH) == pytest.approx(1)
    assert log_e_process([], []).current == 0.0
    assert log_e_process([], []).highest == 0.0
    assert log_e_process([0.0, 0.0], [-1.0, -1.0]).path == pytest.approx([0, 0])


def test_a_verdict_remains_when_the_wealth_is_lost_again() -> None:
    found = log_e_process(np.repeat([1.0, -1.0], 50), np.full(100, -1.0))
    assert found.current < 0 < found.highest
    assert found.rejects(0.01)
    assert found.rejected_at(0.01) is not None


@given(st.integers(0, 10_000), st.floats(1e-6, 1e6))
def test_the_unit_does_not_matter(seed: int, unit: float) -> None:
    values = np.random.default_rng(seed).uniform(-1, 1, 50)
    lowest = np.full(50, -1.0)
    scaled = log_e_process(unit * values, unit * lowest)
    assert scaled.path == pytest.approx(log_e_process(values, lowest).path, abs=1e-9)


@pytest.mark.parametrize(
    ("values", "lowest", "scale", "text"),
    [
        ([1.0], [-1.0, -1.0], None, "lists of the same length"),
        ([[1.0]], [[-1.0]], None, "lists of the same length"),
        ([np.nan], [-1.0], None, "finite"),
        ([1.0], [-np.inf], None, "finite"),
        ([1.0], [0.0], None, "lowest must be below 0"),
        ([-1.1], [-1.0], None, "a value is below its lowest"),
        ([1.0], [-1.0], [0.0], "scale must be a finite number above 0"),
        ([1.0], [-1.0], [np.inf], "scale must be a finite number above 0"),
        ([1.0], [-1.0], [1.0, 1.0], "scale must be a finite number above 0"),
    ],
)
def test_misuse_is_refused(values: object, lowest: object, scale: object, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        log_e_process(values, lowest, scale)  # type: ignore[arg-type]
