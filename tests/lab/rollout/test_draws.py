"""A draw is a moment in which chance decides about the arm of a unit: its probability is exact."""

from __future__ import annotations

from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.lab.rollout.assignment import Assignment
from kantan_agents.lab.rollout.observed import draws as module
from kantan_agents.lab.rollout.observed.draws import Draws
from kantan_agents.lab.rollout.observed.observed_run import Drawn

SHARES = st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.8, 1.0]), min_size=1, max_size=8)


def runs_of(unit: str, shares: list[float], weights: tuple[float, ...] = (1.0,)) -> list[Drawn]:
    """Return the runs that a unit makes at some shares."""
    assignment = Assignment("r", weights)
    return [Drawn(f"{n:032x}", assignment.of(unit, p).arm, unit, p) for n, p in enumerate(shares)]


@given(st.integers(0, 500), SHARES)
def test_the_probability_of_all_arms_is_the_product_over_the_draws(unit: int, shares: list[float]) -> None:
    draws = Draws()
    runs = runs_of(str(unit), shares)
    for run in runs:
        draws.add(run)
    product = 1.0
    for draw in draws.in_order():
        product *= draw.chance if draw.first.arm else 1.0 - draw.chance
    # The unit's number is from 0 to 1: below each share with a new arm, and not below the others.
    high = min([1.0, *(run.share for run in runs if run.arm)])
    low = max([0.0, *(run.share for run in runs if not run.arm)])
    assert product == pytest.approx(high - low)


@given(st.integers(0, 100), SHARES, st.randoms(use_true_random=False))
def test_the_order_of_reading_does_not_matter(unit: int, shares: list[float], random: st.DataObject) -> None:
    runs = runs_of(str(unit), shares, (1.0, 2.0))
    read = [Draws(), Draws()]
    for run in runs:
        read[0].add(run)
    random.shuffle(runs)  # type: ignore[attr-defined]
    for run in (*runs, *runs):
        read[1].add(run)
    one, other = ([(d.first, d.chance, d.own, d.runs) for d in draws.in_order()] for draws in read)
    assert one == other
    assert read[0].units == read[1].units


def test_a_known_unit_is_drawn_again_when_the_share_grows_until_it_has_a_new_arm() -> None:
    draws = Draws()
    for n, (arm, share) in enumerate([(0, 0.0), (0, 0.2), (0, 0.2), (1, 0.6), (1, 0.6), (1, 0.8), (1, 1.0)]):
        draws.add(Drawn(f"{n:032x}", arm, "u", share))
    fresh = [(one.first.arm, one.chance, len(one.runs)) for one in draws.in_order() if 0 < one.chance < 1]
    assert fresh == [(0, 0.2, 2), (1, pytest.approx(0.5), 2)]
    assert draws.of_run(f"{5:032x}") is None, "it had the new arm before this step"
    assert draws.units == {0: 1, 1: 1}


def test_a_lower_share_draws_only_what_the_arm_has_left_open() -> None:
    draws = Draws()
    for n, (arm, share) in enumerate([(2, 0.8), (0, 0.2), (0, 0.2), (2, 0.9)]):
        draws.add(Drawn(f"{n:032x}", arm, "u", share))
    assert [(one.first.arm, one.chance, one.own) for one in draws.in_order()] == [(2, 0.8, 0), (0, 0.25, 2)]


def test_runs_that_are_read_out_of_order_are_sorted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two processes that serve the same unit write their runs in batches.
    found = mock.Mock(side_effect=module._added)
    monkeypatch.setattr(module, "_added", found)
    draws = Draws()
    for n in range(1_024):
        draws.add(Drawn(f"{n ^ 8:032x}", 0, "u", 0.5))
    (draw,) = draws.in_order()
    assert draw.runs == [f"{n:032x}" for n in range(1_024)]
    assert found.call_count < 2_048
