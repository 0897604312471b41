"""``Units``: the first run of each unit, in the order in which the units got their arms."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from kantan_agents.lab.rollout.observed.run import Drawn, ObservedRun

PATIENCE_SECONDS: Final = 600.0
"""A run that has not ended after so long hangs, or its process was killed."""


class Units:
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
