"""Values that are not known yet, and those of later runs, never make a false alarm more likely."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.rollout_users import ALPHA, BEHAVIORS, GUARDS, alarms, failures_until_alarm
from kantan_agents.lab.betting.running import Earlier
from kantan_agents.lab.rollout.evidence.bets import Later, look_points, strongest
from tests.sizes import size

NOTHING = Later(np.array([], dtype=np.intp), np.array([]), np.array([]))
REPEATS = size(30, 20)  # `python benchmarks/rollout_statistics.py` draws 400


@pytest.mark.parametrize("guard", GUARDS, ids=[guard.name for guard in GUARDS])
@given(seed=st.integers(0, 10_000), draws=st.integers(1, 120))
def test_runs_under_way_only_make_the_evidence_weaker(guard: Any, seed: int, draws: int) -> None:
    random = np.random.default_rng(seed)
    share = np.full(draws, 0.5)
    is_new = random.random(draws) < share
    began = np.cumsum(random.exponential(1.0, draws))
    ended = began + random.exponential(5.0, draws)
    final = (
        (random.random(draws) < 0.3).astype(float) if guard.name == "error" else random.lognormal(size=draws)
    )
    everyone = np.ones(draws, dtype=bool)
    found = []
    for now in (*np.quantile(ended, [0.3, 0.6, 0.9]), math.inf):
        open_ones = ended > now
        worst = np.where(is_new, 0.0, 1.0 if guard.name == "error" else 1e300)
        times = began, np.where(open_ones, math.inf, ended)
        begun = began <= now
        # Bets on what has begun less than two seconds ago are not fixed yet.
        first_open = int(np.argmax(open_ones)) if open_ones.any() else draws
        fixed = np.arange(draws) < max(first_open + 1, int(np.searchsorted(began, now - 2.0)))
        chances = np.where(begun & fixed, share, 0.0)
        bets = guard.bets(np.where(open_ones, worst, final), is_new, chances, times=times)
        found.append(strongest(bets, np.where(open_ones, worst, final), everyone, NOTHING, everyone))
    assert found == sorted(found) or np.diff(found).min() > -1e-9


def test_a_bet_waits_two_seconds_for_earlier_values() -> None:
    began = np.array([0.0, 0.1, 5.0, 6.5])
    ended = np.array([8.0, 0.2, math.inf, 6.6])
    known = Earlier.of(4, (began, ended))
    assert [sorted(known.order[:count]) for count in known.known] == [[], [], [1], [0, 1]]


@given(st.integers(0, 200_000))
def test_looks_at_later_values_are_few_and_never_move(later: int) -> None:
    points = look_points(later)
    assert points == look_points(later + 1_000)[: len(points)]
    assert all(first < end <= later for first, end in points)
    assert len(points) < 150
    if points:
        assert later - points[-1][1] < max(8, later // 16 + 1)


@pytest.mark.parametrize("at_edge", [False, True], ids=["equal", "as bad as allowed"])
@pytest.mark.parametrize("number", range(len(BEHAVIORS)), ids=[one.name for one in BEHAVIORS])
def test_false_alarms_are_rare_whatever_users_do(number: int, at_edge: bool) -> None:
    most = ALPHA + 3.0 * math.sqrt(ALPHA * (1 - ALPHA) / REPEATS)
    assert max(alarms(number, at_edge=at_edge, repeats=REPEATS)) <= most


def test_later_runs_that_all_fail_are_seen() -> None:
    assert np.median(failures_until_alarm(0, 5)) < 150
