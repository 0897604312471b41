"""The first run and the first score of each unit, in the order in which the units got their arms."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from kantan_agents.lab.rollout.observed.observed_run import Drawn, ObservedRun
from kantan_agents.lab.rollout.observed.read_scores import RecordedScore
from kantan_agents.lab.rollout.plan import RolloutPlan

PATIENCE_SECONDS: Final = 600.0
"""A run that has not ended after so long hangs, or its process was killed."""

Scored = tuple[Drawn, float]


class UnitRuns:
    """Collects the runs of a rollout, those under way included.

    The tests need the units in the order in which they got their arms. Runs that fail, for example, may end
    sooner than those that succeed: in the order of their ends, the slower arm would look like one that fails.
    So a unit whose run is under way holds up those after it. A run that does not end counts as failed.
    """

    def __init__(self) -> None:
        self._drawn: dict[str, Drawn] = {}
        self._first: dict[str, str] = {}
        self._order: list[str] | None = None
        self._latest = 0.0
        self.runs: dict[str, ObservedRun] = {}

    def add_drawn(self, drawn: Drawn) -> None:
        """Add a run that has begun."""
        self._drawn[drawn.run_id] = drawn
        self._add(drawn.unit, drawn.run_id, drawn.began)

    def add_run(self, run: ObservedRun) -> bool:
        """Add a run that has ended; return whether it is new."""
        if run.id in self.runs:
            return False
        self.runs[run.id] = run
        self._drawn.pop(run.id, None)
        self._add(run.unit, run.id, run.began + (run.seconds or 0.0))
        return True

    def _add(self, unit: str, run_id: str, at: float) -> None:
        self._latest = max(self._latest, at)
        known = self._first.get(unit)
        # Ids of runs are in the order in which the runs began.
        if known is None or run_id < known:
            self._first[unit] = run_id
            self._order = None

    def assigned(self) -> list[Drawn]:
        """Return how each unit got its arm, in order; also those whose run is under way."""
        return [self._drawn.get(run_id) or self.runs[run_id].drawn for run_id in self._in_order()]

    def ended(self) -> list[ObservedRun]:
        """Return the first run of each unit, as far as it has ended, in order."""
        return [self.runs[run_id] for run_id in self._in_order() if run_id in self.runs]

    def settled(self) -> Iterator[ObservedRun]:
        """Yield the first runs of the units in order, up to the first that is under way."""
        now, stop = self._now(), self.first_under_way()
        for run_id in self._in_order():
            if run_id == stop:
                return
            drawn = self._drawn.get(run_id)
            yield self.runs[run_id] if drawn is None else ObservedRun.hanging(drawn, now - drawn.began)

    def first_under_way(self) -> str | None:
        """Return the id of the first run that may still end; None if there is none."""
        now = self._now()
        open_ones = (run_id for run_id in self._in_order() if run_id in self._drawn)
        return next((one for one in open_ones if now - self._drawn[one].began < PATIENCE_SECONDS), None)

    def _now(self) -> float:
        # A clock that was set back must not reopen what was settled.
        return max(self._latest, time.time())

    def _in_order(self) -> list[str]:
        if self._order is None:
            self._order = sorted(self._first.values())
        return self._order


@attrs.define
class _ScoredUnit:
    """A unit.

    Attributes:
        first: Its first run, which got the arm.
        value: Its first score that came in time; None so far.
    """

    first: ObservedRun
    value: float | None = None


class UnitScores:
    """Collects the scores of a metric.

    The tests need the units in the order in which they got their arms, whenever their scores come. If the
    scores of one arm come later, and all scores rise from day to day, the order of arrival would favour that
    arm. So a unit without a score holds up those after it, until no score can come in time any more.

    Args:
        plan: The plan.
    """

    def __init__(self, plan: RolloutPlan) -> None:
        self._plan = plan
        self._units: dict[str, _ScoredUnit] = {}
        self._runs: dict[str, ObservedRun] = {}
        self._early: dict[str, list[RecordedScore]] = {}
        self._latest = 0.0
        self.count = 0
        self.outside = 0

    def add_run(self, run: ObservedRun) -> None:
        """Add a run that has ended."""
        self._runs[run.id] = run
        self._latest = max(self._latest, run.began)
        known = self._units.get(run.unit)
        if known is None:
            self._units[run.unit] = _ScoredUnit(run)
        elif run.id < known.first.id:
            known.first = run  # it took longer than a later run
        for score in self._early.pop(run.id, ()):
            self._add(run, score)

    def add_score(self, score: RecordedScore) -> None:
        """Add a score; one by a judge inside a run comes before the end of the run."""
        self._latest = max(self._latest, score.at)
        run = self._runs.get(score.run_id)
        if run is None:
            self._early.setdefault(score.run_id, []).append(score)
        else:
            self._add(run, score)

    def _add(self, run: ObservedRun, score: RecordedScore) -> None:
        self.count += 1
        low, high = self._plan.metric_range
        self.outside += not low <= score.value <= high
        unit = self._units[run.unit]
        # A unit may have moved to another arm since its first run.
        is_late = score.at - unit.first.began > self._plan.score_within
        if unit.value is None and not is_late and run.arm == unit.first.arm:
            unit.value = min(high, max(low, score.value))

    def settled(self, under_way: str | None) -> Iterator[Scored]:
        """Yield the units with a score, up to the first unit whose score may still come.

        Args:
            under_way: Id of the first run that has not ended; None if all have.
        """
        units = self._in_order()
        for unit in units[: self._first_open(units)]:
            if under_way is not None and unit.first.id > under_way:
                return
            if unit.value is not None:
                yield unit.first.drawn, unit.value

    def held_up(self) -> tuple[int, float]:
        """Return how many units with a score wait for that of an earlier unit, and until when at most.

        The time is in seconds since 1970.
        """
        units = self._in_order()
        place = self._first_open(units)
        waiting = sum(unit.value is not None for unit in units[place:])
        return waiting, units[place].first.began + self._plan.score_within if waiting else 0.0

    def _first_open(self, units: Sequence[_ScoredUnit]) -> int:
        # A clock that was set back must not reopen what was settled.
        horizon = max(self._latest, time.time()) - self._plan.score_within
        for place, unit in enumerate(units):
            if unit.value is None and unit.first.began > horizon and not unit.first.failed:
                return place
        return len(units)

    def known(self) -> Iterator[Scored]:
        """Yield all units with a score."""
        return ((unit.first.drawn, unit.value) for unit in self._in_order() if unit.value is not None)

    def _in_order(self) -> list[_ScoredUnit]:
        return sorted(self._units.values(), key=lambda unit: unit.first.id)
