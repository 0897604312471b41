"""The runs of a rollout as arrays of values for each assignment."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Final, Literal

import attrs
import numpy as np
import numpy.typing as npt

from kantan_agents.lab.betting.running import GRACE_SECONDS
from kantan_agents.lab.rollout.evidence.bets import Later
from kantan_agents.lab.rollout.observed.draws import Draw
from kantan_agents.lab.rollout.observed.observed_run import ObservedRun
from kantan_agents.lab.rollout.observed.read_runs import begun_runs, ended_runs
from kantan_agents.lab.rollout.observed.read_scores import new_scores
from kantan_agents.lab.rollout.observed.runs import Runs
from kantan_agents.lab.rollout.observed.scores import Scored, Scores
from kantan_agents.lab.rollout.plan import RolloutPlan
from kantan_agents.traces.store.connection import reading

Floats = npt.NDArray[np.float64]
Kind = Literal["error", "cost", "tokens", "latency"]

_VALUES: Final = {
    "error": attrgetter("failed"),
    "cost": attrgetter("cost"),
    "tokens": attrgetter("tokens"),
    "latency": attrgetter("seconds"),
}


@attrs.frozen(eq=False)
class Sample:
    """Values of one measure for each assignment, in their order; NaN without a value.

    ``chances`` is the probability of any new arm; 0 while the bet is not fixed. ``own`` is the only possible
    new arm; 0 if any.
    """

    values: Floats
    arms: npt.NDArray[np.int64]
    chances: Floats
    own: npt.NDArray[np.int64]
    times: tuple[Floats, Floats] | None
    later: Later

    def against_control(self, arm: int, weight: float) -> tuple[npt.NDArray[np.bool_], Floats]:
        """Return which assignments are of an arm or the control, and their probabilities of the arm."""
        chosen = (self.arms == arm) | (self.arms == 0)
        own = self.own[chosen]
        of_arm = self.chances[chosen] * np.where(own == 0, weight, own == arm)
        of_both = of_arm + (1.0 - self.chances[chosen])
        share = np.divide(of_arm, of_both, out=np.zeros_like(of_arm), where=of_both > 0)
        return chosen, np.clip(share, 0.0, 1.0)


class Samples:
    """Reads the runs and the scores of a rollout, each once."""

    def __init__(self, path: Path, name: str, plan: RolloutPlan) -> None:
        self._path, self._name, self._plan = path, name, plan
        self._forget()

    def _forget(self) -> None:
        self._newest = 0
        self._newest_trace = 0
        self._newest_score = 0
        self._runs = Runs()
        self._scores = Scores(self._plan, self._runs)
        self.not_drawn: Counter[str] = Counter()

    @property
    def runs(self) -> Collection[ObservedRun]:
        """The finished runs."""
        return self._runs.ended.values()

    def update(self) -> bool:
        """Read the news; return whether there are any."""
        before = (len(self.runs), self._scores.count)
        begun = self._runs.clock
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
                    self._scores.add(score)
        self._runs.looked = begun
        return before != (len(self.runs), self._scores.count)

    def _read_runs(self, connection: sqlite3.Connection) -> None:
        for place, drawn in begun_runs(connection, self._newest_trace, self._name, self._plan):
            self._newest_trace = max(self._newest_trace, place)
            self._runs.add_drawn(drawn)
        runs, not_drawn = ended_runs(connection, self._newest, self._name, self._plan)
        for run in runs:
            if self._runs.add_run(run):
                self._scores.add_run(run)
        self.not_drawn += not_drawn

    def assigned(self) -> Sample:
        """Return the arm of each user, even of an active run, without values."""
        draws = self._runs.draws.in_order()
        return _sample(draws, np.zeros(len(draws)))

    def units(self) -> Mapping[int, int]:
        """Return the number of users of each arm."""
        return self._runs.draws.units

    def measure(self, kinds: Iterable[Kind]) -> dict[Kind, Sample]:
        """Return the values of the runs; active ones count as the least suspicious outcome."""
        runs, draws = self._runs, self._runs.draws.in_order()
        first = runs.observed(draw.runs[0] for draw in draws)
        began = np.array([run.began for run in first], dtype=np.float64)
        ended = np.array([run.ended for run in first], dtype=np.float64)
        first_open = int(np.argmax(np.isinf(ended))) if np.isinf(ended).any() else len(draws)
        fixed = max(first_open + 1, int(np.searchsorted(began, runs.now - GRACE_SECONDS)))
        later = sorted((run, place) for place, draw in enumerate(draws) for run in draw.runs[1:])
        later_runs = runs.observed(run for run, _ in later)
        whole = _sample(draws, began, None, [place for _, place in later])
        whole.chances[fixed:] = 0.0
        found = {}
        for kind in kinds:
            values = values_of(first, kind)
            found[kind] = attrs.evolve(
                whole,
                values=values,
                times=(began, np.where(np.isnan(values), np.inf, ended)),
                later=attrs.evolve(whole.later, values=values_of(later_runs, kind)),
            )
        return found

    def scores(self) -> Sample:
        """Return the first settled score in range of each assignment, and later ones."""
        return _of_scores(self._scores.settled())

    def all_scores(self) -> Sample:
        """Return the first score of each assignment that has one."""
        return _of_scores(self._scores.known())

    def held_up(self) -> tuple[int, float]:
        """Return how many scored users wait, and until when at most."""
        return self._scores.held_up()

    def under_way(self) -> int:
        """Return how many runs may still end."""
        return len(self._runs.under_way())

    def never_ended(self) -> int:
        """Return how many runs count as failed because they have not ended."""
        return self._runs.never_ended()

    def not_compared(self) -> tuple[int, int]:
        """Return how many runs, of how many users, have an arm that was certain."""
        found = [run for run in self.runs if self._is_certain(run)]
        return len(found), len({run.unit for run in found})

    def _is_certain(self, run: ObservedRun) -> bool:
        draw = self._runs.draws.of_run(run.id)
        return draw is None or draw.chance in (0.0, 1.0)

    @property
    def outside(self) -> int:
        """Number of scores outside of the range of the metric; they do not count."""
        return self._scores.outside


def values_of(runs: Iterable[ObservedRun], kind: Kind) -> Floats:
    """Return a value of each run; NaN without one."""
    return np.array([*map(_VALUES[kind], runs)], dtype=np.float64)  # None becomes NaN


def _of_scores(scored: Sequence[Scored]) -> Sample:
    later = sorted((place, draw, value) for draw, one in enumerate(scored) for place, value in one.later)
    values = np.array([one.value for one in scored], dtype=np.float64)
    found = _sample([one.draw for one in scored], values, None, [draw for _, draw, _ in later])
    of_later = np.array([value for _, _, value in later], dtype=np.float64)
    return attrs.evolve(found, later=attrs.evolve(found.later, values=of_later))


def _sample(
    draws: Sequence[Draw],
    values: Floats,
    times: tuple[Floats, Floats] | None = None,
    later: Sequence[int] = (),
) -> Sample:
    return Sample(
        values,
        np.array([draw.first.arm for draw in draws], dtype=np.int64),
        np.array([draw.chance for draw in draws], dtype=np.float64),
        np.array([draw.own for draw in draws], dtype=np.int64),
        times,
        Later(
            np.array(later, dtype=np.intp),
            np.full(len(later), np.nan),
            np.array([draw.step for draw in draws], dtype=np.float64),
        ),
    )
