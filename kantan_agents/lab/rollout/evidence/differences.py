"""Whether the means of a bounded metric differ."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.betting.running import Floats, Times, running_mean
from kantan_agents.lab.betting.wealth import Evidence
from kantan_agents.lab.rollout.evidence.bets import Bets
from kantan_agents.lab.rollout.evidence.observations import Observations, drawn
from kantan_agents.lab.rollout.evidence.weighting import Weighted, running_spread, weighted


def mean_difference(
    values: npt.ArrayLike,
    is_new: npt.ArrayLike,
    share: npt.ArrayLike,
    *,
    lowest: float,
    highest: float,
    margin: float = 0.0,
) -> Evidence:
    """Return the evidence that the new arm's mean is above the control's by more than ``margin``.

    The hypothesis: for each user, given all earlier values, the expected value with the new arm is at most
    the one with the control plus ``margin``. Both may drift together over time.

    For the opposite direction, negate the values: ``-values``, with ``lowest=-highest`` and
    ``highest=-lowest``. With ``margin=0.02``, for example, it is evidence that the new arm is worse by more
    than 0.02.

    Args:
        values: Shape (observations,): in the order of assignment, from ``lowest`` to ``highest``.
        is_new: Shape (observations,): True for the new arm, False for the control.
        share: Shape (observations,): the probability with which the user got the new arm. Observations with a
            share of 0 or 1 are skipped.
        lowest: The least possible value, on the scale of the metric.
        highest: The largest possible value.
        margin: On the scale of the metric; negative for evidence that the new arm is not worse by that much.

    Raises:
        ValueError: Shapes differ; a value is not finite or out of range; a share is not a probability;
            ``lowest`` is not below ``highest``; ``margin`` is not smaller than their distance.

    Source: as for `weighted` and `log_e_process`.
    """
    bets = difference_bets(values, is_new, share, lowest=lowest, highest=highest, margin=margin)
    return bets.evidence(values)


def difference_bets(
    values: npt.ArrayLike,
    is_new: npt.ArrayLike,
    share: npt.ArrayLike,
    *,
    lowest: float,
    highest: float,
    margin: float = 0.0,
    times: Times | None = None,
) -> Bets:
    """Return the bets of `mean_difference`; ``times`` as for `drawn`."""
    check_margin(margin, lowest, highest)
    seen = drawn(values, is_new, share, times)
    baseline, spread = _baseline(seen, lowest, highest)
    places = np.arange(len(seen.values))
    return Bets(seen, places, baseline, spread, lowest, highest, margin, lambda given, _: given)


def weighted_differences(seen: Observations, lowest: float, highest: float) -> Weighted:
    """Return an estimate of the difference of both means for each observation."""
    baseline, spread = _baseline(seen, lowest, highest)
    return weighted(
        seen.values, seen.is_new, seen.share, baseline, spread, lowest_new=lowest, highest_control=highest
    )


def _baseline(seen: Observations, lowest: float, highest: float) -> tuple[Floats, Floats]:
    if not (math.isfinite(lowest) and math.isfinite(highest) and lowest < highest):
        raise ValueError(f"lowest must be below highest, and both finite: {lowest}, {highest}")
    if not ((seen.values >= lowest) & (seen.values <= highest)).all():
        raise ValueError(f"a value is not from {lowest} to {highest}")
    middle = lowest + (highest - lowest) / 2.0
    baseline = np.clip(running_mean(seen.values, middle, seen.earlier), lowest, highest)
    return baseline, running_spread(seen.values, baseline, highest - lowest, seen.earlier)


def check_margin(margin: float, lowest: float, highest: float) -> None:
    """Reject a margin that no difference, or every difference, exceeds."""
    if not abs(margin) < highest - lowest:
        raise ValueError(f"margin must be smaller than the range of the values: {margin}")
