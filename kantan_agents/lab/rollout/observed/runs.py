"""The runs of a rollout, including active ones, and their values."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import Final

from kantan_agents.lab.rollout.observed.draws import Draws
from kantan_agents.lab.rollout.observed.observed_run import Drawn, ObservedRun

PATIENCE_SECONDS: Final = 600.0
"""A run that takes longer hangs, or its process was killed."""

_MOST: Final = 1e300


class Runs:
    """Collects the runs of a rollout.

    Failing runs may end sooner than others: in the order of their ends, the slower arm would look like one
    that fails. So a run counts from its start, and while it is active as the least suspicious outcome: a run
    of a new arm as a free success, a run of the control as a failure of the largest cost.
    A run that does not end has failed.
    """

    def __init__(self) -> None:
        self.ended: dict[str, ObservedRun] = {}
        self.draws = Draws()
        self._open: dict[str, Drawn] = {}
        self._late_at: dict[str, float] = {}
        self._latest = 0.0
        self._last = 0.0
        self.looked = 0.0

    def add_drawn(self, drawn: Drawn) -> None:
        """Add a started run."""
        if drawn.run_id not in self.ended:
            self._open[drawn.run_id] = drawn
            # By the clock of this process: another clock may be wrong by more than the patience.
            began = min(max(drawn.began, self.looked), self.clock)
            self._late_at[drawn.run_id] = began + PATIENCE_SECONDS
            self._add(drawn, drawn.began)

    def add_run(self, run: ObservedRun) -> bool:
        """Add a finished run; return whether it is new."""
        if run.id in self.ended:
            return False
        self.ended[run.id] = run
        self._open.pop(run.id, None)
        self._late_at.pop(run.id, None)
        self._add(run.drawn, run.ended)
        return True

    def _add(self, drawn: Drawn, at: float) -> None:
        self._latest = max(self._latest, at)
        self.draws.add(drawn)

    def under_way(self) -> set[str]:
        """Return the ids of the runs that may still end."""
        now = self.clock
        return {run_id for run_id in self._open if now < self._late_at[run_id]}

    def never_ended(self) -> int:
        """Return the number of runs that count as failed because they have not ended."""
        return len(self._open) - len(self.under_way())

    def observed(self, run_ids: Iterable[str]) -> list[ObservedRun]:
        """Return runs; active ones with an infinite end."""
        now, ended = self.clock, self.ended
        return [ended.get(run_id) or self._so_far(self._open[run_id], now) for run_id in run_ids]

    def _so_far(self, drawn: Drawn, now: float) -> ObservedRun:
        if now >= self._late_at[drawn.run_id]:
            # Not its duration so far: bets on later assignments depend on it, and must not change.
            return ObservedRun(drawn, True, PATIENCE_SECONDS, None, None, drawn.began + PATIENCE_SECONDS)
        # Not its duration so far: it may still fail, and then has no duration at all.
        most = 0.0 if drawn.arm else _MOST
        return ObservedRun(drawn, drawn.arm == 0, most, most, most, math.inf)

    @property
    def clock(self) -> float:
        """The time by the clock of this process, in seconds since 1970."""
        # A clock that was set back must not reopen settled assignments.
        self._last = max(self._last, time.time())
        return self._last

    @property
    def now(self) -> float:
        """The time, in seconds since 1970, by the clock that is ahead of all others."""
        return max(self._latest, self.clock)
