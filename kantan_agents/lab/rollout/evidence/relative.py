"""Whether a positive metric with a heavy tail has grown."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.betting.running import Floats, Times, running_mean, running_quantile
from kantan_agents.lab.betting.wealth import Evidence
from kantan_agents.lab.rollout.evidence.bets import Bets
from kantan_agents.lab.rollout.evidence.observations import drawn
from kantan_agents.lab.rollout.evidence.weighting import running_spread

CAP_QUANTILE: Final = 0.95
CAP_MULTIPLE: Final = 2.0
_FEWEST: Final = 20


def relative_increase(
    values: npt.ArrayLike, is_new: npt.ArrayLike, share: npt.ArrayLike, *, factor: float
) -> Evidence:
    """Return the evidence that the new arm's mean is more than ``factor`` times the control's.

    A single enormous value could decide everything, so values above a cap count as the cap: twice the 95 %
    quantile of all earlier values of both arms, computed anew whenever a tenth more are known. The
    hypothesis: for each user, given all earlier values, the expected capped value with the new arm is at most
    ``factor`` times the one with the control. There is no bet before the 21st observation, and none while the
    cap is 0.

    A rise only in values above the cap stays undetected; `tail_increase` tests for it.

    Args:
        values: Shape (observations,): in the order of assignment, at least 0, in any measure.
        is_new: Shape (observations,): True for the new arm, False for the control.
        share: Shape (observations,): the probability with which the user got the new arm. Observations with a
            share of 0 or 1 are skipped.
        factor: Above 0, such as 1.1 for a rise by more than 10 %.

    Raises:
        ValueError: Shapes differ; a value is not finite or is negative; a share is not a probability;
            ``factor`` is not above 0.

    Source: as for `weighted` and `log_e_process`; capping is winsorizing, Tukey, The Future of Data Analysis,
    Annals of Mathematical Statistics 33 (1962).
    """
    return relative_bets(values, is_new, share, factor=factor).evidence(values)


def relative_bets(
    values: npt.ArrayLike,
    is_new: npt.ArrayLike,
    share: npt.ArrayLike,
    *,
    factor: float,
    times: Times | None = None,
) -> Bets:
    """Return the bets of `relative_increase`; ``times`` as for `drawn`."""
    check_factor(factor)
    seen = drawn(values, is_new, share, times)
    if (seen.values < 0.0).any():
        raise ValueError("values must be at least 0")
    everyone = np.ones(len(seen.values), dtype=np.bool_)
    cap = CAP_MULTIPLE * running_quantile(seen.values, everyone, CAP_QUANTILE, _FEWEST, seen.earlier)
    places = np.flatnonzero(cap > 0.0)  # not while it is NaN
    # In parts of the cap. Values before the first cap count in the baseline, and the first cap is known when
    # they do.
    cap = np.where(cap > 0.0, cap, cap[places[0]] if len(places) else 1.0)

    # Let x be the part of the cap, p the share and m the conditional means of x. The outcome u is x for the
    # new arm and factor * x for the control, so that `weighted` estimates m_new - factor * m_control. That is
    # at most 0 under the hypothesis, whatever the baseline k, because both arms have the same cap. Written
    # out, the estimate is (x - k) / p or -(factor * x - k) / (1 - p). The best k is (1 - p) * m_new + p *
    # factor * m_control. If both means are about b, that is b * (1 - p + p * factor), and b is the mean of
    # earlier x.
    def outcomes(given: Floats, at: npt.NDArray[np.intp]) -> Floats:
        parts = np.minimum(given, cap[at]) / cap[at]
        return np.where(seen.is_new[at], parts, factor * parts)

    parts = np.minimum(seen.values, cap) / cap
    mean = running_mean(parts, 0.0, seen.earlier)
    baseline = np.minimum(mean * (1.0 + seen.share * (factor - 1.0)), factor)
    spread = running_spread(np.where(seen.is_new, parts, factor * parts), baseline, factor, seen.earlier)
    return Bets(seen, places, baseline, spread, 0.0, factor, 0.0, outcomes)


def check_factor(factor: float) -> None:
    """Reject a factor that is not a number above 0."""
    if not (math.isfinite(factor) and factor > 0.0):
        raise ValueError(f"factor must be a finite number above 0, not {factor}")
