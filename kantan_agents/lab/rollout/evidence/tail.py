"""Whether the slow runs have become slower by a factor."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.betting.running import Floats, Times, running_mean, running_quantile
from kantan_agents.lab.betting.wealth import Evidence
from kantan_agents.lab.rollout.evidence.bets import Bets
from kantan_agents.lab.rollout.evidence.observations import drawn
from kantan_agents.lab.rollout.evidence.relative import check_factor
from kantan_agents.lab.rollout.evidence.weighting import running_spread


def tail_increase(
    values: npt.ArrayLike,
    is_new: npt.ArrayLike,
    share: npt.ArrayLike,
    *,
    factor: float,
    quantile: float = 0.95,
) -> Evidence:
    """Return the evidence that the new arm's high quantile is more than ``factor`` times the control's.

    Let q be the ``quantile`` of the control's earlier values. The hypothesis: for each user, given all
    earlier values, the probability of more than ``factor`` * q with the new arm is at most the probability of
    more than q with the control. It holds if the new arm is at most ``factor`` times as slow everywhere in
    its distribution. It is about the estimated quantiles of the control, not the true one.

    q is computed anew whenever a tenth more values of the control are known. There is no bet before 1 / (1 -
    ``quantile``) values are known, which is 20 for 0.95.

    Args:
        values: Shape (observations,): in the order of assignment, at least 0, in any measure.
        is_new: Shape (observations,): True for the new arm, False for the control.
        share: Shape (observations,): the probability with which the user got the new arm. Observations with a
            share of 0 or 1 are skipped.
        factor: Above 0, such as 1.2 for a quantile that is more than 20 % higher.
        quantile: Between 0 and 1.

    Raises:
        ValueError: Shapes differ; a value is not finite or is negative; a share is not a probability;
            ``factor`` is not above 0; ``quantile`` is not between 0 and 1.

    Source: as for `weighted` and `log_e_process`; a quantile as a proportion of exceedances is the sign test,
    Conover, Practical Nonparametric Statistics (3rd edition, 1999), section 3.2.
    """
    return tail_bets(values, is_new, share, factor=factor, quantile=quantile).evidence(values)


def tail_bets(
    values: npt.ArrayLike,
    is_new: npt.ArrayLike,
    share: npt.ArrayLike,
    *,
    factor: float,
    quantile: float = 0.95,
    times: Times | None = None,
) -> Bets:
    """Return the bets of `tail_increase`; ``times`` as for `drawn`."""
    check_factor(factor)
    if not 0.0 < quantile < 1.0:
        raise ValueError(f"quantile must be between 0 and 1, not {quantile}")
    seen = drawn(values, is_new, share, times)
    if (seen.values < 0.0).any():
        raise ValueError("values must be at least 0")
    fewest = math.ceil(1.0 / (1.0 - quantile) - 1e-9)
    limit = running_quantile(seen.values, ~seen.is_new, quantile, fewest, seen.earlier)
    bets = ~np.isnan(limit)
    longest = np.where(seen.is_new, factor * limit, limit)

    def outcomes(given: Floats, at: npt.NDArray[np.intp]) -> Floats:
        return (given > longest[at]).astype(np.float64)

    # Before the first limit, the share above it is about 1 - quantile by definition.
    exceeds = np.where(bets, seen.values > longest, 1.0 - quantile)
    baseline = running_mean(exceeds, 1.0 - quantile, seen.earlier)
    spread = running_spread(exceeds, baseline, 1.0, seen.earlier)
    return Bets(seen, np.flatnonzero(bets), baseline, spread, 0.0, 1.0, 0.0, outcomes)
