"""Whether the slow runs of a metric such as latency have become slower by more than a factor."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.rollout.evidence.betting import Evidence, log_e_process, with_skipped
from kantan_agents.lab.rollout.evidence.observations import drawn
from kantan_agents.lab.rollout.evidence.relative import check_factor
from kantan_agents.lab.rollout.evidence.running import running_mean, running_quantile
from kantan_agents.lab.rollout.evidence.weighting import weighted


def tail_increase(
    values: npt.ArrayLike,
    is_new: npt.ArrayLike,
    share: npt.ArrayLike,
    *,
    factor: float,
    quantile: float = 0.95,
) -> Evidence:
    """Return the evidence that the new arm's high quantile is more than ``factor`` times the control's.

    Let q be the ``quantile`` of the control's earlier values. The hypothesis that is tested says: for each
    unit, given all that was earlier, the probability of more than ``factor`` * q with the new arm is at most
    the probability of more than q with the control. It holds if the new arm is at most ``factor`` times as
    slow everywhere in its distribution. It speaks about the q's that were used, so about a quantile of the
    control as it was estimated so far, not about the true one.

    q is computed anew whenever a tenth more values of the control are known. There is no bet before 1 /
    (1 - ``quantile``) of them are, which is 20 for 0.95.

    Args:
        values: Shape (observations,): in the order of assignment, at least 0, in any unit.
        is_new: Shape (observations,): True for the new arm, False for the control.
        share: Shape (observations,): the probability with which the unit got the new arm. Observations with a
            share of 0 or 1 are skipped.
        factor: Above 0, such as 1.2 for a quantile that is more than 20 % higher.
        quantile: Between 0 and 1.

    Raises:
        ValueError: Shapes differ; a value is not finite or is negative; a share is not a probability;
            ``factor`` is not above 0; ``quantile`` is not between 0 and 1.

    Source: as for `weighted` and `log_e_process`; a quantile as a proportion of exceedances is the sign test,
    Conover, Practical Nonparametric Statistics (3rd edition, 1999), section 3.2.
    """
    check_factor(factor)
    if not 0.0 < quantile < 1.0:
        raise ValueError(f"quantile must be between 0 and 1, not {quantile}")
    seen = drawn(values, is_new, share)
    if (seen.values < 0.0).any():
        raise ValueError("values must be at least 0")
    fewest = math.ceil(1.0 / (1.0 - quantile) - 1e-9)
    limit = running_quantile(seen.values, ~seen.is_new, quantile, fewest)
    bets = ~np.isnan(limit)
    arms, shares, limit = seen.is_new[bets], seen.share[bets], limit[bets]
    exceeds = (seen.values[bets] > np.where(arms, factor * limit, limit)).astype(np.float64)
    baseline = running_mean(exceeds, 1.0 - quantile)
    gains, least, scale = weighted(exceeds, arms, shares, baseline, lowest_new=0.0, highest_control=1.0)
    used = seen.used.copy()
    used[seen.used] = bets
    return with_skipped(log_e_process(gains, least, scale), used)
