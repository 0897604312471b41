"""The scores of a metric, by assignment."""

from __future__ import annotations

from typing import NamedTuple

import attrs

from kantan_agents.lab.experiment.on_scale import on_scale
from kantan_agents.lab.rollout.observed.draws import Draw
from kantan_agents.lab.rollout.observed.observed_run import ObservedRun
from kantan_agents.lab.rollout.observed.read_scores import RecordedScore
from kantan_agents.lab.rollout.observed.runs import Runs
from kantan_agents.lab.rollout.plan import RolloutPlan


class Scored(NamedTuple):
    """An assignment with its first score and its others."""

    draw: Draw
    value: float
    later: list[tuple[int, float]]


class Scores:
    """Collects the scores of a metric.

    If the scores of one arm came later, and all scores rose from day to day, the order of arrival would give
    that arm an advantage. So an assignment without a score holds up later ones, until no score can come in
    time any more.
    """

    def __init__(self, plan: RolloutPlan, runs: Runs) -> None:
        self._plan, self._runs = plan, runs
        self._of_run: dict[str, list[RecordedScore]] = {}
        self._early: dict[str, list[RecordedScore]] = {}
        self._due: dict[str, float] = {}
        self.count = 0
        self.outside = 0

    def add_run(self, run: ObservedRun) -> None:
        """Add a finished run."""
        # By the clock of this process: the run's clock may be wrong.
        ended = min(max(run.ended, self._runs.looked), self._runs.clock)
        self._due[run.id] = ended + self._plan.score_within
        for score in self._early.pop(run.id, ()):
            self.add(score)

    def add(self, score: RecordedScore) -> None:
        """Add a score, which may come before its run ends."""
        if score.run_id not in self._runs.ended:
            self._early.setdefault(score.run_id, []).append(score)
            return
        self.count += 1
        value = on_scale(score.value, self._plan.metric_range)
        if value is None:
            self.outside += 1
            return
        # By the same clock: it has come since the last look.
        at = min(max(score.at, self._runs.looked), self._runs.clock)
        self._of_run.setdefault(score.run_id, []).append(attrs.evolve(score, value=value, at=at))

    def known(self) -> list[Scored]:
        """Return all assignments with a score, in order."""
        found = (self._scored(draw) for draw in self._runs.draws.in_order())
        return [one for one in found if one is not None]

    def settled(self) -> list[Scored]:
        """Return scored assignments up to the first one still waiting."""
        draws = self._runs.draws.in_order()
        found = (self._scored(draw) for draw in draws[: self._first_open(draws)])
        return [one for one in found if one is not None]

    def held_up(self) -> tuple[int, float]:
        """Return how many scored assignments wait, and until when at most, in seconds since 1970."""
        draws = self._runs.draws.in_order()
        place = self._first_open(draws)
        waiting = sum(self._scored(draw) is not None for draw in draws[place:])
        if not waiting:
            return 0, 0.0
        return waiting, self._due_of(draws[place])

    def _due_of(self, draw: Draw) -> float:
        return self._due.get(draw.first.run_id, draw.first.began + self._plan.score_within)

    def _scored(self, draw: Draw) -> Scored | None:
        known = (score for run in draw.runs for score in self._of_run.get(run, ()))
        scores = sorted(known, key=lambda one: one.place)
        due = self._due_of(draw)
        first = next((one for one in scores if one.at <= due), None)
        if first is None:
            return None
        return Scored(draw, first.value, [(one.place, one.value) for one in scores if one is not first])

    def _first_open(self, draws: list[Draw]) -> int:
        looked, open_runs = self._runs.looked, self._runs.under_way()
        for place, draw in enumerate(draws):
            if draw.chance in (0.0, 1.0):  # no test counts it
                continue
            if draw.first.run_id in open_runs:
                return place
            run = self._runs.ended.get(draw.first.run_id)
            if run is None or run.failed or self._due[run.id] < looked or self._scored(draw) is not None:
                continue
            return place
        return len(draws)
