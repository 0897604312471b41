"""``Samples``: what the runs of a rollout say, one value for each unit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from kantan_agents.rollout.observed.read_runs import count_not_drawn, ended_runs
from kantan_agents.rollout.observed.read_scores import new_scores
from kantan_agents.rollout.observed.run import ObservedRun
from kantan_agents.rollout.observed.sample import Sample, sample_of
from kantan_agents.rollout.observed.unit_scores import UnitScores
from kantan_agents.rollout.plan import Plan
from kantan_agents.tracing.store.connection import reading


class Samples:
    """Reads the runs and the scores of a rollout, each once; keeps the first value of each unit.

    A unit keeps its arm, so its later runs say nothing more about the arms: they are not drawn anew. Figures
    of runs are in the order in which the runs have ended.

    Args:
        path: The trace database.
        name: Name of the rollout.
        plan: Its plan.

    Attributes:
        runs: The runs by id, in the order in which they have ended.
        not_drawn: How many runs have no drawn arm, by reason.
    """

    def __init__(self, path: Path, name: str, plan: Plan) -> None:
        self._path, self._name, self._plan = path, name, plan
        self._forget()

    def _forget(self) -> None:
        self._newest = 0
        self._newest_score = 0
        self.runs: dict[str, ObservedRun] = {}
        self.not_drawn: Counter[str] = Counter()
        self._scores = UnitScores(self._plan)

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
            for _, run in ended_runs(connection, self._newest, self._name, self._plan):
                if self.runs.setdefault(run.id, run) is run:
                    self._scores.add_run(run)
            self.not_drawn += count_not_drawn(connection, self._newest, self._name)
            self._newest = newest
            if self._plan.metric is not None:
                for score in new_scores(connection, self._newest_score, self._plan.metric):
                    self._newest_score = max(self._newest_score, score.place)
                    self._scores.add_score(score)
        return before != (len(self.runs), self._scores.count)

    def units(self) -> Sample:
        """Return which arm each unit got; the values say nothing."""
        return self._sample(lambda _: 0.0)

    def errors(self) -> Sample:
        """Return whether the first run of each unit has failed, 1 or 0."""
        return self._sample(lambda run: float(run.failed))

    def seconds(self) -> Sample:
        """Return the durations of runs that have not failed."""
        return self._sample(lambda run: run.seconds)

    def tokens(self) -> Sample:
        """Return the tokens."""
        return self._sample(lambda run: run.tokens)

    def costs(self) -> Sample:
        """Return the costs."""
        return self._sample(lambda run: run.cost)

    def scores(self) -> Sample:
        """Return the first score of each unit within the range of the metric, in the order of assignment.

        It ends before the first unit whose score may still come.
        """
        return sample_of(self._scores.settled())

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

    def _sample(self, value_of: Callable[[ObservedRun], float | None]) -> Sample:
        pairs = ((run, value_of(run)) for run in self.runs.values())
        return _first((run, value) for run, value in pairs if value is not None)


def _first(pairs: Iterable[tuple[ObservedRun, float]]) -> Sample:
    """Return the first value of each unit."""
    kept: dict[str, tuple[ObservedRun, float]] = {}
    for run, value in pairs:
        kept.setdefault(run.unit, (run, value))
    return sample_of(kept.values())
