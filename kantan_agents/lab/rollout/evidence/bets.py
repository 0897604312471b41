"""``Bets``: what was decided about each draw when it was made, whatever its value will be."""

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
"""Returns the outcomes of values; also given the places of their draws among those used."""


@attrs.frozen(eq=False)
class Bets:
    """The bets of a test on each draw.

    They depend on the values of earlier draws that are known two seconds after the draw, and change later
    only if a run is recorded late. Each factor of the wealth rises with the value of a new arm and falls with
    that of the control. So a value that is not known yet may be replaced by the least that a new arm
    can have, or by the most that the control can have: the evidence is then a lower bound of what it will be.
    Another value of the same draws, such as that of a later run, gives a test of its own.

    Attributes:
        seen: The draws. Their values have decided about the bets on later ones, and nothing else.
        places: Shape (bets,): the places of the draws with a bet, among those of ``seen``.
        baseline: Shape (seen,): as for `weighted`.
        spread: Shape (seen,): as for `weighted`.
        lowest_new: The least outcome that the new arm can have.
        highest_control: The largest outcome that the control can have.
        margin: By how much the mean outcome of the new arm may be above that of the control.
        outcomes: From values to outcomes.
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
        """Return the evidence of values of the draws.

        Args:
            values: Shape (given,): in the order of the draws.
            counts: Shape (given,): which draws have a value; None for all.
        """
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
"""The part of the first wealth that bets on the first value of each draw; the rest bets on later ones."""
_EACH, _GROWTH, _BACK = 8, 16, 16


@attrs.frozen(eq=False)
class Later:
    """Values of draws after the first, in the order in which their runs began.

    Attributes:
        draws: Shape (later values,): the places of their draws.
        values: Shape (later values,): NaN for a run without a value.
        steps: Shape (draws,): what the draws of one step of a rollout have in common, such as the share.
    """

    draws: npt.NDArray[np.intp]
    values: Floats
    steps: Floats


def strongest(bets: Bets, values: Floats, counts: Flags, later: Later, chosen: Flags) -> float:
    """Return the logarithm of the strongest evidence of the first values and of all looks at later ones.

    The later values of a draw are no further draws, so no bet may follow another on the same draw. At each
    look, the latest value of each draw is a test of its own, among the draws of the current step that have
    one since 16 looks earlier. The first values share 3/4 of the first wealth, and look n gets a part of the
    rest, 1 / (n * (n + 1)). The probability that any of them ever reaches its threshold is at most the sum of
    theirs, whatever they have in common (Bonferroni).

    If arms are equal, that holds whatever the users do. If an arm decides who comes back, the later values
    of both arms are of different users, and what is tested is the excess over the baseline of those who did.

    Args:
        bets: The bets on the draws of an arm and the control.
        values: Shape (draws,): the first values.
        counts: Shape (draws,): which draws have one.
        later: The later values, of all arms.
        chosen: Shape (draws of all arms,): which of them are those of ``bets``.

    Source: Dunn, Journal of the American Statistical Association 56 (1961), for the sum; Howard, Ramdas,
    McAuliffe and Sekhon, Time-uniform, nonparametric, nonasymptotic confidence sequences, Annals of
    Statistics 49 (2021), for parts that sum to 1.
    """
    found = bets.evidence(values, counts).highest + math.log(FIRST)
    for number, (first, end) in enumerate(look_points(len(later.draws)), 1):
        latest = np.full(len(chosen), np.nan)
        latest[later.draws[first:end]] = later.values[first:end]  # the last one of each draw remains
        latest[later.steps != later.steps[later.draws[end - 1]]] = np.nan
        own = latest[chosen]
        highest = bets.evidence(own, ~np.isnan(own)).highest
        found = max(found, highest + math.log((1.0 - FIRST) / (number * (number + 1))))
    return max(0.0, found)


def look_points(later: int) -> list[tuple[int, int]]:
    """Return from and up to which of the later values each look counts.

    There is a look after each 8 values, and beyond 128 whenever a sixteenth more are known.

    Args:
        later: How many there are.
    """
    points, point = [0], _EACH
    while point <= later:
        points.append(point)
        point += max(_EACH, point // _GROWTH)
    return [(points[max(0, number - _BACK)], points[number]) for number in range(1, len(points))]
