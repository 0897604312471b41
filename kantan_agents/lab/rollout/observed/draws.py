"""Random assignments of users to arms, with their probabilities."""

from __future__ import annotations

from collections import Counter
from typing import Final

import attrs

from kantan_agents.lab.rollout.observed.observed_run import Drawn

_DIGITS: Final = 12
"""Dividing a share by a weight and multiplying it again changes its last digit."""


@attrs.define(eq=False)
class Draw:
    """A random assignment of a user, and the runs that followed.

    ``chance`` is the probability of any new arm, given the user's earlier arms. ``own`` is the only new arm
    that the user could get; 0 if any.
    """

    first: Drawn
    step: float
    chance: float
    own: int
    runs: list[str]


@attrs.define
class _Unit:
    """Bounds of a user's first number, which determines all arms: ``low`` <= number < ``high``."""

    low: float = 0.0
    high: float = 1.0
    own: int = 0
    steps: dict[float, Draw | None] = attrs.Factory(dict)
    runs: list[Drawn] = attrs.Factory(list)
    arms: set[int] = attrs.Factory(set)


class Draws:
    """Finds the random assignments of a rollout among its runs.

    A user has one fixed number in [0, 1), and a new arm if it is below the share. Each arm therefore shows
    between which shares the number is. At another share p between them, a new arm has the probability (p -
    low) / (high - low). At any other share the arm is certain, and the runs give no evidence.
    """

    def __init__(self) -> None:
        self._units: dict[str, _Unit] = {}
        self._of_run: dict[str, Draw | None] = {}
        self._order: list[Draw] | None = None
        self._unsorted: set[str] = set()
        self.units: Counter[int] = Counter()

    def add(self, drawn: Drawn) -> None:
        """Add a run, finished or not, in any order."""
        if drawn.run_id in self._of_run:
            return
        self._order = None
        unit = self._units.setdefault(drawn.unit, _Unit())
        # Ids of runs are in the order in which the runs started.
        if unit.runs and drawn.run_id < unit.runs[-1].run_id:
            self._unsorted.add(drawn.unit)
        unit.runs.append(drawn)
        # Only until all runs are known if they are not sorted: sorting at each run would take too long.
        self._of_run[drawn.run_id] = None if drawn.unit in self._unsorted else _added(unit, drawn)
        if drawn.arm not in unit.arms:
            unit.arms.add(drawn.arm)
            self.units[drawn.arm] += 1

    def _sort(self) -> None:
        for name in self._unsorted:
            known = self._units[name]
            unit = self._units[name] = _Unit(arms=known.arms)
            unit.runs = sorted(known.runs, key=lambda run: run.run_id)
            for run in unit.runs:
                self._of_run[run.run_id] = _added(unit, run)
        self._unsorted.clear()

    def of_run(self, run_id: str) -> Draw | None:
        """Return the assignment of a run; None if its arm was certain."""
        self._sort()
        return self._of_run.get(run_id)

    def in_order(self) -> list[Draw]:
        """Return all assignments, in the order of their first runs."""
        self._sort()
        if self._order is None:
            found = (draw for unit in self._units.values() for draw in unit.steps.values() if draw)
            self._order = sorted(found, key=lambda draw: draw.first.run_id)
        return self._order


def _added(unit: _Unit, run: Drawn) -> Draw | None:
    share = round(run.share, _DIGITS)
    if share in unit.steps:
        draw = unit.steps[share]
        if draw is None or draw.first.arm != run.arm:
            return None
        draw.runs.append(run.run_id)
        return draw
    draw = None
    if unit.low < share < unit.high:
        draw = Draw(run, share, (share - unit.low) / (unit.high - unit.low), unit.own, [run.run_id])
    elif share in (0.0, 1.0):
        draw = Draw(run, share, share, unit.own, [run.run_id])
    unit.steps[share] = draw
    if run.arm == 0:
        unit.low = max(unit.low, share)
    elif share < 1.0:  # at 1, a promoted arm replaces the user's arm
        unit.high, unit.own = min(unit.high, share), run.arm
    return draw
