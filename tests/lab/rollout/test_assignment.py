"""Which arm a unit gets: always the same one, until its share grows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.lab.rollout.assignment import Assignment
from tests.programs import Preloaded

UNITS = st.text(max_size=40)
SHARES = st.floats(0, 1)
WEIGHTS = st.lists(st.floats(0.01, 1), min_size=1, max_size=4)


@given(UNITS, SHARES, WEIGHTS, st.text(min_size=1))
def test_a_unit_has_the_same_arm_whoever_asks(
    unit: str, share: float, weights: list[float], name: str
) -> None:
    assert Assignment(name, weights).of(unit, share) == Assignment(name, weights).of(unit, share)


@given(UNITS, WEIGHTS, st.lists(SHARES, min_size=2))
def test_a_growing_share_moves_units_from_the_control_only_and_once(
    unit: str, weights: list[float], shares: list[float]
) -> None:
    assignment = Assignment("r", weights)
    arms = [assignment.of(unit, share).arm for share in sorted(shares)]
    changes = [arm for number, arm in enumerate(arms) if number == 0 or arm != arms[number - 1]]
    assert len(changes) == 1 or (len(changes) == 2 and changes[0] == 0)


@given(UNITS, WEIGHTS)
def test_nobody_has_a_new_arm_at_share_0_and_everybody_at_1(unit: str, weights: list[float]) -> None:
    assignment = Assignment("r", weights)
    assert assignment.of(unit, 0.0).arm == 0
    assert 1 <= assignment.of(unit, 1.0).arm <= len(weights)


@given(SHARES, WEIGHTS)
def test_the_shares_of_all_arms_sum_to_1(share: float, weights: list[float]) -> None:
    assignment = Assignment("r", weights)
    shares = [assignment.share_of(arm, share) for arm in range(len(weights) + 1)]
    assert sum(shares) == pytest.approx(1)
    assert all(0 <= one <= 1 for one in shares)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_arms_get_their_shares(share: float) -> None:
    assignment, units = Assignment("r", [3, 1]), 20_000
    counts = [0, 0, 0]
    for unit in range(units):
        counts[assignment.of(f"user-{unit}", share).arm] += 1
    for arm, count in enumerate(counts):
        expected = assignment.share_of(arm, share)
        assert abs(count / units - expected) < 4 * (expected * (1 - expected) / units) ** 0.5


def test_rollouts_of_other_names_draw_independently() -> None:
    one, other = Assignment("one", [1]), Assignment("other", [1])
    both = sum(one.of(str(unit), 0.5).arm == other.of(str(unit), 0.5).arm for unit in range(4_000))
    assert abs(both - 2_000) < 130


def test_another_process_draws_the_same(preloaded: Preloaded) -> None:
    code = (
        "from kantan_agents.lab.rollout.assignment import Assignment\n"
        "a = Assignment('größe', [1, 2])\n"
        "print([a.of(f'u{n}', 0.6).arm for n in range(200)])"
    )
    finished = preloaded.run(["-c", code])
    assert finished.returncode == 0, finished.stderr
    own = Assignment("größe", [1, 2])
    assert finished.stdout.strip() == str([own.of(f"u{number}", 0.6).arm for number in range(200)])
