"""``Samples``: what the runs of a rollout say, as a ``Sample`` of one value for each unit."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from kantan_agents.lab.rollout.observed.observed_run import Drawn, ObservedRun
from kantan_agents.lab.rollout.observed.read_runs import begun_runs, ended_runs
from kantan_agents.lab.rollout.observed.read_scores import new_scores
from kantan_agents.lab.rollout.observed.units_in_order import UnitRuns, UnitScores
from kantan_agents.lab.rollout.plan import RolloutPlan
from kantan_agents.traces.store.connection import reading

Measure = Callable[[ObservedRun], "float | None"]
"""Returns a value of a run; None if it has none."""


@attrs.frozen(eq=False)
class Sample:
    """Values of one measure, one for each unit, in the order in which they became known.

    Attributes:
        values: Shape (units,).
        arms: Shape (units,): number of the arm; 0 is the control.
        shares: Shape (units,): the share of all new arms together when the arm was drawn.
    """

    values: npt.NDArray[np.float64]
    arms: npt.NDArray[np.int64]
    shares: npt.NDArray[np.float64]

    def of_arm(self, arm: int) -> npt.NDArray[np.float64]:
        """Return the values of one arm."""
        chosen: npt.NDArray[np.float64] = self.values[self.arms == arm]
        return chosen

    def against_control(self, arm: int, weight: float) -> tuple[Any, Any, Any]:
        """Return the values of an arm and the control, which are of the arm, and with which probability.

        Args:
            arm: Number of the arm.
            weight: Its proportion among the new arms.
        """
        chosen = (self.arms == arm) | (self.arms == 0)
        of_arm = self.shares[chosen] * weight
        of_both = of_arm + (1.0 - self.shares[chosen])
        share = np.divide(of_arm, of_both, out=np.zeros_like(of_arm), where=of_both > 0)
        return self.values[chosen], self.arms[chosen] == arm, np.clip(share, 0.0, 1.0)


def _sample_of(pairs: Iterable[tuple[Drawn, float]]) -> Sample:
    """Return the sample of values.

    Args:
        pairs: For each unit how it got its arm, and its value, in order.
    """
    kept = list(pairs)
    return Sample(
        np.array([value for _, value in kept], dtype=np.float64),
        np.array([drawn.arm for drawn, _ in kept], dtype=np.int64),
        np.array([drawn.share for drawn, _ in kept], dtype=np.float64),
    )


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

    def __init__(self, path: Path, name: str, plan: RolloutPlan) -> None:
        self._path, self._name, self._plan = path, name, plan
        self._forget()

    def _forget(self) -> None:
        self._newest = 0
        self._newest_trace = 0
        self._newest_score = 0
        self._units = UnitRuns()
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
        return _sample_of((drawn, 0.0) for drawn in self._units.assigned())

    def measure(self, value_of: Measure, *, settled: bool = True) -> Sample:
        """Return one value for each unit.

        Args:
            value_of: Returns the value of a run; None if it has none.
            settled: Whether to end before the first unit whose run is under way.
        """
        runs = self._units.settled() if settled else self._units.ended()
        pairs = ((run.drawn, value_of(run)) for run in runs)
        return _sample_of((drawn, value) for drawn, value in pairs if value is not None)

    def scores(self) -> Sample:
        """Return the first score of each unit within the range of the metric, settled."""
        return _sample_of(self._scores.settled(self._units.first_under_way()))

    def all_scores(self) -> Sample:
        """Return the first score of each unit that has one."""
        return _sample_of(self._scores.known())

    def held_up(self) -> tuple[int, float]:
        """Return how many units with a score wait for that of an earlier unit, and until when at most."""
        return self._scores.held_up()

    @property
    def outside(self) -> int:
        """How many scores are outside of the range of the metric; they count as its nearest end."""
        return self._scores.outside
