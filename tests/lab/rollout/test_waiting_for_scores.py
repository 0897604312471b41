"""How long a draw waits for its score, whatever the clocks of the processes say."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from kantan_agents.lab.rollout.observed.observed_run import Drawn, ObservedRun
from kantan_agents.lab.rollout.observed.read_scores import RecordedScore
from kantan_agents.lab.rollout.observed.runs import Runs
from kantan_agents.lab.rollout.observed.scores import Scores

HOUR = 3_600.0
PLAN: Any = SimpleNamespace(metric_range=(0.0, 1.0), score_within=600.0)


class Observed:
    """The runs and scores of a rollout, as one process sees them."""

    def __init__(self) -> None:
        self.runs = Runs()
        self.scores = Scores(PLAN, self.runs)
        self.count = 0

    def run(self, ago: float, *, score: float | None = None) -> str:
        """Add a run that ended so long ago, by the clock of its process; return its id."""
        self.count += 1
        run_id = f"{int((time.time() - ago) * 1_000):012x}{self.count:020x}"
        drawn = Drawn(run_id, self.count % 2, run_id, 0.5)
        run = ObservedRun(drawn, False, 0.0, None, None, drawn.began)
        self.runs.add_run(run)
        self.scores.add_run(run)
        if score is not None:
            self.score(run_id, run.began + 1.0)
        return run_id

    def score(self, run_id: str, at: float, value: float = 1.0) -> None:
        """Add a score that was given at a time by the clock of its process."""
        self.scores.add(RecordedScore(self.count, run_id, value, at))

    def look(self) -> None:
        """Say that all that there was has been added."""
        self.runs.looked = self.runs.clock

    @property
    def settled(self) -> int:
        """How many draws with a score are counted after a look."""
        self.look()
        return len(self.scores.settled())


def test_a_draw_waits_for_its_score_and_no_longer() -> None:
    for ago, settled in ((60.0, 0), (700.0, 1)):
        observed = Observed()
        observed.run(ago)
        observed.run(30.0, score=1.0)
        assert observed.settled == settled
        waiting, until = observed.scores.held_up()
        assert (waiting, until) == (
            (1, pytest.approx(time.time() + 540.0, abs=60.0)) if not settled else (0, 0)
        )


def test_a_clock_that_is_an_hour_ahead_does_not_end_the_waiting_of_others() -> None:
    observed = Observed()
    observed.run(60.0)
    observed.run(30.0, score=1.0)
    observed.run(-HOUR, score=1.0)
    assert (observed.settled, observed.scores.held_up()[0]) == (0, 2)


def test_a_clock_that_is_behind_does_not_end_the_waiting_of_its_own_runs() -> None:
    observed = Observed()
    observed.look()
    observed.run(HOUR)
    observed.run(30.0, score=1.0)
    assert observed.settled == 0


def test_a_run_whose_clock_is_ahead_does_not_hold_up_the_others_for_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    observed = Observed()
    observed.run(-HOUR)
    observed.run(-HOUR, score=1.0)
    assert observed.settled == 0
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 700.0)
    assert observed.settled == 1


def test_what_is_settled_stays_so_if_the_clock_is_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    observed = Observed()
    observed.run(700.0)
    observed.run(30.0, score=1.0)
    assert observed.settled == 1
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now - HOUR)
    assert observed.settled == 1


def test_a_score_counts_if_it_comes_in_time_whatever_its_clock_says() -> None:
    observed = Observed()
    ahead = observed.run(60.0)
    observed.score(ahead, time.time() + HOUR)
    assert observed.settled == 1


def test_a_score_that_comes_too_late_does_not_change_what_is_settled_whatever_its_clock_says() -> None:
    observed = Observed()
    late = observed.run(700.0)
    observed.run(30.0, score=1.0)
    assert observed.settled == 1
    observed.score(late, time.time() - 650.0)
    assert observed.settled == 1


def test_a_score_that_is_outside_by_rounding_alone_counts_as_the_end_of_the_range() -> None:
    observed = Observed()
    observed.score(observed.run(60.0), time.time(), 1.0000001)
    assert ([one.value for one in observed.scores.known()], observed.scores.outside) == ([1.0], 0)
