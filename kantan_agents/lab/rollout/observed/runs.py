"""``Runs``: the runs of a rollout, those under way included, and their values."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from kantan_agents.lab.rollout.observed.draws import Draws
from kantan_agents.lab.rollout.observed.observed_run import Drawn, ObservedRun

PATIENCE_SECONDS: Final = 600.0
"""A run that has not ended after so long hangs, or its process was killed."""

_MOST: Final = 1e300

Kind = Literal["error", "cost", "tokens", "latency"]


class Value(NamedTuple):
    """A value of a run.

    Attributes:
        value: The value; NaN if the run has none.
        known: When it became known, in seconds since 1970; infinity if it is not known yet.
    """

    value: float
    known: float


class Runs:
    """Collects the runs of a rollout.

    Runs that fail may end sooner than those that succeed: in the order of their ends, the slower arm would
    look like one that fails. So a run counts from its beginning. As long as it is under way, it counts as
    the least reason for suspicion that it can still become: one of a new arm as a success that costs
    nothing, one of the control as a failure of the largest cost. A run that does not end has failed.

    Attributes:
        ended: The runs that have ended, by id.
        draws: The draws.
    """

    def __init__(self) -> None:
        self.ended: dict[str, ObservedRun] = {}
        self.draws = Draws()
        self._open: dict[str, Drawn] = {}
        self._latest = 0.0

    def add_drawn(self, drawn: Drawn) -> None:
        """Add a run that has begun."""
        if drawn.run_id not in self.ended:
            self._open[drawn.run_id] = drawn
            self._add(drawn, drawn.began)

    def add_run(self, run: ObservedRun) -> bool:
        """Add a run that has ended; return whether it is new."""
        if run.id in self.ended:
            return False
        self.ended[run.id] = run
        self._open.pop(run.id, None)
        self._add(run.drawn, run.ended)
        return True

    def _add(self, drawn: Drawn, at: float) -> None:
        self._latest = max(self._latest, at)
        self.draws.add(drawn)

    def under_way(self) -> set[str]:
        """Return the ids of the runs that may still end."""
        now = self._now()
        return {run_id for run_id, one in self._open.items() if now - one.began < PATIENCE_SECONDS}

    def later(self) -> Iterator[tuple[str, int]]:
        """Yield each run of a draw but the first, with the place of its draw, in the order of beginning."""
        pairs = ((run, place) for place, one in enumerate(self.draws.in_order()) for run in one.runs[1:])
        return iter(sorted(pairs))

    def value(self, run_id: str, kind: Kind, now: float) -> Value:
        """Return a value of a run.

        Args:
            run_id: Id of the run.
            kind: What to measure.
            now: The time, in seconds since 1970.
        """
        run = self.ended.get(run_id)
        if run is not None:
            value = run.measured(kind)
            return Value(math.nan, math.inf) if value is None else Value(value, run.ended)
        drawn = self._open[run_id]
        if now - drawn.began < PATIENCE_SECONDS:
            # An error may still end it, and then it has no duration at all.
            return Value(0.0 if drawn.arm else 1.0 if kind == "error" else _MOST, math.inf)
        value = ObservedRun.hanging(drawn, now).measured(kind)
        return Value(math.nan if value is None else value, drawn.began + PATIENCE_SECONDS)

    def _now(self) -> float:
        # A clock that was set back must not reopen what was settled.
        return max(self._latest, time.time())

    now = property(_now, doc="The time, in seconds since 1970.")
