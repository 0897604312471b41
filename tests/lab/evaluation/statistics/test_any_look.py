"""The test and the interval that hold at any look: against direct products, and as cases are added."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kantan_agents.lab.betting.wealth import EFFECTS, FIRST_WEALTH
from kantan_agents.lab.evaluation.statistics import any_look, fewest_cases_at_any_look, more_cases_at_any_look

GRADES = st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), min_size=1, max_size=40)
ANY = st.lists(st.floats(-1e6, 1e6).map(lambda one: round(one, 3)), min_size=1, max_size=40)
BOUNDS = st.sampled_from([None, 1.0])


def highest_wealth(values: Sequence[float]) -> float:
    """Return the largest wealth of bets on signs, whose stakes know the sizes."""
    wealths, highest, seen = np.array(FIRST_WEALTH), 1.0, []
    for value in values:
        seen.append(abs(value))
        scale = math.sqrt(math.pi / 2) * float(np.mean(seen))
        wealths = wealths * [1 + min(effect / scale, 0.9 / abs(value)) * value for effect in EFFECTS]
        highest = max(highest, float(wealths.sum()))
    return highest


@given(ANY)
def test_without_a_bound_p_is_that_of_bets_on_the_signs(differences: list[float]) -> None:
    moved = [one for one in differences if one]
    best = max(highest_wealth(moved), highest_wealth([-one for one in moved]))
    assert any_look(differences, bound=None).p == pytest.approx(min(1.0, 2 / best), rel=1e-6)


@given(GRADES, BOUNDS)
def test_p_never_rises_as_cases_are_added_and_the_interval_never_grows(
    differences: list[float], bound: float | None
) -> None:
    looks = [any_look(differences[:size], bound=bound) for size in range(1, len(differences) + 1)]
    ps = [one.p for one in looks]
    assert ps == pytest.approx(sorted(ps, reverse=True))
    if bound is not None:
        first, last = looks[0].interval, looks[-1].interval
        assert first is not None and last is not None
        # Bounds are found with a precision of a fiftieth of the standard error.
        assert first.low <= last.low + 0.03 and last.high <= first.high + 0.03


@given(GRADES)
def test_the_interval_excludes_zero_where_p_is_small(differences: list[float]) -> None:
    for level in (0.95, 0.5):
        found = any_look(differences, bound=1.0, level=level)
        assert found.interval is not None
        if abs(found.p - (1 - level)) > 0.05:
            excludes = not found.interval.low <= 0 <= found.interval.high
            assert excludes == (found.p < 1 - level) or min(map(abs, found.interval)) < 0.02


@given(GRADES, BOUNDS)
def test_swapping_the_sides_turns_the_signs_and_nothing_else(
    differences: list[float], bound: float | None
) -> None:
    found = any_look(differences, bound=bound)
    turned = any_look([-one for one in differences], bound=bound)
    assert (turned.mean, turned.p, turned.direction) == (-found.mean, found.p, -found.direction)
    if found.interval is not None:
        assert turned.interval == pytest.approx(found.interval.negated())


def test_the_unit_does_not_matter_without_a_bound() -> None:
    drawn = np.random.default_rng(1).normal(0.4, 1, 60)
    assert any_look(drawn * 1e9, bound=None).p == pytest.approx(any_look(drawn, bound=None).p)


def test_a_conversation_is_one_value_at_the_place_of_its_last_case() -> None:
    found = any_look([1.0, 0.5, 0.0, -1.0], ["a", None, "a", None], bound=1.0)
    assert found == any_look([0.5, 0.5, -1.0], bound=1.0)
    assert found.units == 3


@pytest.mark.parametrize("bound", [None, 1.0])
def test_so_many_cases_show_the_difference_in_most_experiments(bound: float | None) -> None:
    random = np.random.default_rng(1)

    def drawn(size: int) -> list[float]:
        return random.choice([-1.0, 0.0, 1.0], size, p=[0.05, 0.7, 0.25]).tolist()  # type: ignore[no-any-return]

    few = drawn(40)
    more = more_cases_at_any_look(few, 0.2, bound=bound)
    assert more is not None
    found = [any_look(drawn(40 + more), bound=bound).p <= 0.05 for _ in range(40)]
    assert 0.6 < np.mean(found) < 1
    assert more_cases_at_any_look(few * 100, 0.2, bound=bound) == 0
    whole = more_cases_at_any_look(
        [one for one in few for _ in "ab"], 0.2, sorted([*range(40)] * 2), bound=bound
    )
    assert whole == pytest.approx(2 * more, abs=1)


@pytest.mark.parametrize(("differences", "wanted"), [([0.5], 0.1), ([0.5, 0.5], 0.1), ([0.5, 0.0], 0.0)])
def test_what_cannot_be_known_is_no_number(differences: list[float], wanted: float) -> None:
    assert more_cases_at_any_look(differences, wanted, bound=1.0) is None


@pytest.mark.parametrize("bound", [None, 1.0, 7.0])
@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-6, 1e-30])
def test_no_fewer_cases_can_be_enough(bound: float | None, alpha: float) -> None:
    fewest = fewest_cases_at_any_look(bound=bound, alpha=alpha)
    size = 1.0 if bound is None else bound
    p = [any_look([size] * count, bound=bound).p for count in (fewest, fewest - 1) if count]
    assert p[0] <= alpha and all(one > alpha for one in p[1:])


def test_equal_sides_say_nothing() -> None:
    assert any_look([0.0] * 50, bound=None) == (0.0, 0, 1.0, None, 50)
    found = any_look([0.0] * 50, bound=1.0)
    assert found.p == 1.0
    assert found.interval is not None and found.interval.low < 0 < found.interval.high


@pytest.mark.parametrize(
    ("differences", "more"),
    [
        ([], {"bound": 1.0}),
        ([math.nan], {"bound": 1.0}),
        ([1.5], {"bound": 1.0}),
        ([0.5], {"bound": 0.0}),
        ([0.5], {"bound": math.inf}),
        ([0.5], {"bound": 1.0, "level": 1.0}),
        ([0.5], {"bound": None, "clusters": ["a", "b"]}),
    ],
)
def test_misuse_is_a_value_error(differences: list[float], more: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"must be|there are"):
        any_look(differences, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("alpha", [0.0, 1.0, 1.5])
def test_the_fewest_cases_take_a_probability(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha must be between 0 and 1"):
        fewest_cases_at_any_look(bound=1.0, alpha=alpha)
