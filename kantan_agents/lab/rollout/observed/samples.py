"""``Samples``: what the runs of a rollout say, one value for each unit."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path

from kantan_agents.lab.rollout.observed.read_runs import begun_runs, ended_runs
from kantan_agents.lab.rollout.observed.read_scores import new_scores
from kantan_agents.lab.rollout.observed.run import ObservedRun
from kantan_agents.lab.rollout.observed.sample import Sample, sample_of
from kantan_agents.lab.rollout.observed.unit_scores import UnitScores
from kantan_agents.lab.rollout.observed.units import Units
from kantan_agents.lab.rollout.plan import Plan
from kantan_agents.traces.store.connection import reading

Measure = Callable[[ObservedRun], "float | None"]
"""Returns a value of a run; None if it has none."""


class Samples:
    """Reads the runs and the scores of a rollout, each once; keeps the first run of each unit.

    A unit keeps its arm, so its later runs say nothing more about the arms: they are not drawn anew. All
    samples are in the order in which the units got their arms. Those for tests are settled: they end before
    the first unit whose value may still come.

    Args:
        path: The trace database.
        name: Name of the rollout.
        plan: Its plan.

    Attributes:
        not_drawn: How many runs have no drawn arm, by reason.
    """

    def __init__(self, path: Path, name: str, plan: Plan) -> None:
        self._path, self._name, self._plan = path, name, plan
        self._forget()

    def _forget(self) -> None:
        self._newest = 0
        self._newest_trace = 0
        self._newest_score = 0
        self._units = Units()
        self._scores = UnitScores(self._plan)
        self.not_drawn: Counter[str] = Counter()

    @property
    def runs(self) -> Collection[ObservedRun]:
        """The runs that have ended."""
        return self._units.runs.values()

    def update(self) -> bool:
        """Read what is new; return whether anything is.

        Raises:
            TraceDatabaseError: E60, the file cannot be read.
        """
        before = (len(self.runs), self._scores.count)
        with reading(self._path) as connection:
            connection.execute("BEGIN")
            newest = connection.execute("SELECT MAX(rowid) FROM spans").fetchone()[0] or 0
            if newest < self._newest:
                self._forget()  # the file was replaced, or its rows were numbered anew
            self._read_runs(connection)
            self._newest = newest
            if self._plan.metric is not None:
                for score in new_scores(connection, self._newest_score, self._plan.metric):
                    self._newest_score = max(self._newest_score, score.place)
                    self._scores.add_score(score)
        return before != (len(self.runs), self._scores.count)

    def _read_runs(self, connection: sqlite3.Connection) -> None:
        for place, drawn in begun_runs(connection, self._newest_trace, self._name, self._plan):
            self._newest_trace = max(self._newest_trace, place)
            self._units.add_drawn(drawn)
        runs, not_drawn = ended_runs(connection, self._newest, self._name, self._plan)
        for run in runs:
            if self._units.add_run(run):
                self._scores.add_run(run)
        self.not_drawn += not_drawn

    def assigned(self) -> Sample:
        """Return which arm each unit got, also if its run is under way; the values say nothing."""
        return sample_of((drawn, 0.0) for drawn in self._units.assigned())

    def measure(self, value_of: Measure, *, settled: bool = True) -> Sample:
        """Return one value for each unit.

        Args:
            value_of: Returns the value of a run; None if it has none.
            settled: Whether to end before the first unit whose run is under way.
        """
        runs = self._units.settled() if settled else self._units.ended()
        pairs = ((run.drawn, value_of(run)) for run in runs)
        return sample_of((drawn, value) for drawn, value in pairs if value is not None)

    def scores(self) -> Sample:
        """Return the first score of each unit within the range of the metric, settled."""
        return sample_of(self._scores.settled(self._units.first_under_way()))

    def all_scores(self) -> Sample:
        """Return the first score of each unit that has one."""
        return sample_of(self._scores.known())

    def held_up(self) -> tuple[int, float]:
        """Return how many units with a score wait for that of an earlier unit, and until when at most."""
        return self._scores.held_up()

    @property
    def outside(self) -> int:
        """How many scores are outside of the range of the metric; they count as its nearest end."""
        return self._scores.outside
