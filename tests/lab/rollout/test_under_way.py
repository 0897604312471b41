"""How long a run may be under way, whatever the clocks of the processes say."""

from __future__ import annotations

import time

import pytest

from kantan_agents.lab.rollout.observed.observed_run import Drawn, ObservedRun
from kantan_agents.lab.rollout.observed.runs import PATIENCE_SECONDS, Runs


def begun(number: int, ago: float) -> Drawn:
    """Return a run of the new arm."""
    return Drawn(f"{int((time.time() - ago) * 1_000):012x}{number:020x}", 1, str(number), 0.5)


def test_a_clock_that_is_an_hour_ahead_does_not_end_the_patience_with_others() -> None:
    runs, waiting, ahead = Runs(), begun(1, 1.0), begun(2, -3_600.0)
    runs.add_drawn(waiting)
    runs.add_run(ObservedRun(ahead, False, 1.0, None, None, ahead.began + 1.0))
    assert runs.under_way() == {waiting.run_id}
    assert not runs.observed([waiting.run_id])[0].failed


def test_a_run_of_a_process_whose_clock_is_behind_has_just_begun() -> None:
    runs, behind = Runs(), begun(1, 2 * PATIENCE_SECONDS)
    runs.looked = runs.clock
    runs.add_drawn(behind)
    assert runs.under_way() == {behind.run_id}
    assert not runs.observed([behind.run_id])[0].failed


def test_a_run_of_a_process_whose_clock_is_ahead_is_waited_for_no_longer_than_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs, ahead = Runs(), begun(1, -3_600.0)
    runs.add_drawn(ahead)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + PATIENCE_SECONDS + 1.0)
    assert (runs.under_way(), runs.never_ended()) == (set(), 1)


def test_a_run_that_hangs_has_the_same_values_at_each_look() -> None:
    runs, hanging = Runs(), begun(1, 2 * PATIENCE_SECONDS)
    runs.add_drawn(hanging)
    (found,) = runs.observed([hanging.run_id])
    assert (found.failed, found.seconds, runs.never_ended()) == (True, PATIENCE_SECONDS, 1)
    assert runs.observed([hanging.run_id]) == [found]
