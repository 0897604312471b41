"""The bets on each assignment, fixed when it happened, whatever its value will be."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import attrs
import numpy as np
import numpy.typing as npt

from kantan_agents.lab.betting.running import Flags, Floats
from kantan_agents.lab.betting.wealth import Evidence, log_e_process, with_skipped
from kantan_agents.lab.rollout.evidence.observations import Observations
from kantan_agents.lab.rollout.evidence.weighting import weighted

Outcomes = Callable[[Floats, npt.NDArray[np.intp]], Floats]
"""From values and the positions of their assignments to outcomes."""


@attrs.frozen(eq=False)
class Bets:
    """The bets of a test on each assignment.

    They depend on values of earlier assignments that are known two seconds after the assignment. Each factor
    of the wealth rises with the value of a new arm and falls with the value of the control. So the least or
    the largest possible value may replace one that is not known yet: the evidence is a lower bound.
    """

    seen: Observations
    places: npt.NDArray[np.intp]
    baseline: Floats
    spread: Floats
    lowest_new: float
    highest_control: float
    margin: float
    outcomes: Outcomes

    def evidence(self, values: npt.ArrayLike, counts: Flags | None = None) -> Evidence:
        """Return the evidence of values, one for each assignment; ``counts`` marks the known ones."""
        given = np.flatnonzero(self.seen.used)
        places = self.places if counts is None else self.places[counts[given[self.places]]]
        used = np.zeros(len(self.seen.used), dtype=np.bool_)
        used[given[places]] = True
        chosen = np.asarray(values, dtype=np.float64)[used]
        gains, least, scale = weighted(
            self.outcomes(chosen, places),
            self.seen.is_new[places],
            self.seen.share[places],
            self.baseline[places],
            self.spread[places],
            lowest_new=self.lowest_new,
            highest_control=self.highest_control,
        )
        return with_skipped(log_e_process(gains - self.margin, least - self.margin, scale), used)


FIRST: Final = 0.75
"""The part of the initial wealth for first values; the rest bets on later ones."""
_EACH, _GROWTH, _BACK = 8, 16, 16


@attrs.frozen(eq=False)
class Later:
    """Values after the first of an assignment, in the order in which their runs started.

    ``steps`` has an id of the rollout's step for each assignment.
    """

    draws: npt.NDArray[np.intp]
    values: Floats
    steps: Floats


def strongest(bets: Bets, values: Floats, counts: Flags, later: Later, chosen: Flags) -> float:
    """Return the log of the strongest evidence of the first values and of all looks at later ones.

    No bet may follow another on the same assignment. So at each look, the latest values are a separate test,
    among the assignments of the current step that have one since 16 looks earlier. The first values share 3/4
    of the initial wealth, and look n gets 1 / (n * (n + 1)) of the rest (Bonferroni).

    If an arm influences who comes back, the test is about the excess over the baseline of those users.

    Source: Dunn, Journal of the American Statistical Association 56 (1961), for the sum; Howard, Ramdas,
    McAuliffe and Sekhon, Time-uniform, nonparametric, nonasymptotic confidence sequences, Annals of
    Statistics 49 (2021), for parts that sum to 1.
    """
    found = bets.evidence(values, counts).highest + math.log(FIRST)
    for number, (first, end) in enumerate(look_points(len(later.draws)), 1):
        latest = np.full(len(chosen), np.nan)
        latest[later.draws[first:end]] = later.values[first:end]  # the last one of each assignment remains
        latest[later.steps != later.steps[later.draws[end - 1]]] = np.nan
        own = latest[chosen]
        highest = bets.evidence(own, ~np.isnan(own)).highest
        found = max(found, highest + math.log((1.0 - FIRST) / (number * (number + 1))))
    return max(0.0, found)


def look_points(later: int) -> list[tuple[int, int]]:
    """Look after each 8 later values, and beyond 128 whenever a sixteenth more are known."""
    points, point = [0], _EACH
    while point <= later:
        points.append(point)
        point += max(_EACH, point // _GROWTH)
    return [(points[max(0, number - _BACK)], points[number]) for number in range(1, len(points))]
