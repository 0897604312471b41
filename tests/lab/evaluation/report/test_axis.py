"""The axis of the charts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.lab.evaluation.report.charts.drawing import Axis

VALUES = st.floats(-1e9, 1e9, allow_nan=False).map(lambda value: round(value, 6))


@given(st.lists(VALUES, min_size=1, max_size=8))
def test_every_value_is_drawn_between_the_ends_and_a_few_ticks_are_shown(values: list[float]) -> None:
    axis = Axis.over(values, 100, 500)
    assert all(100 <= axis.at(value) <= 500 for value in values)
    assert 1 <= len(axis.ticks) <= 8
    assert all(99.9 <= axis.at(tick) <= 500.1 for tick in axis.ticks)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0, 1], [0, 0.5, 1]),
        ([-0.2, 0.3], [-0.2, 0, 0.2]),
        ([0, 97], [0, 50, 100]),
        ([5, 5], [4.8, 4.9, 5.0, 5.1, 5.2]),
    ],
)
def test_ticks_are_round_numbers(values: list[float], ticks: list[float]) -> None:
    found = Axis.over(values, 0, 1).ticks
    assert len(found) == len(ticks)
    assert all(math.isclose(one, other, abs_tol=1e-9) for one, other in zip(found, ticks, strict=True))
