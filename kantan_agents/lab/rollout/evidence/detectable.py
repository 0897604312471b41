"""How long a rollout is likely to take."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.betting.wealth import log_e_process, threshold
from kantan_agents.lab.rollout.evidence.differences import check_margin, weighted_differences
from kantan_agents.lab.rollout.evidence.observations import drawn

_FEWEST: Final = 10
_HOPELESS: Final = 10_000_000


def more_observations(
    values: npt.ArrayLike,
    is_new: npt.ArrayLike,
    share: npt.ArrayLike,
    *,
    lowest: float,
    highest: float,
    margin: float = 0.0,
    alpha: float = 0.05,
    future_share: float | None = None,
) -> int | None:
    """Estimate how many more observations `mean_difference` needs to reject.

    It is a rough estimate for a status line: the middle of the possible outcomes, if the difference so far is
    the true one, which may be far off. The verdict does not depend on it.

    Args:
        values: Shape (observations,): as for `mean_difference`.
        is_new: Shape (observations,): as for `mean_difference`.
        share: Shape (observations,): as for `mean_difference`.
        lowest: The least possible value.
        highest: The largest possible value.
        margin: As for `mean_difference`.
        alpha: Probability of a false alarm.
        future_share: Probability of the new arm from now on; None for the share of the last observation that
            counts.

    Returns:
        The number of observations, 0 if it rejects already. None if it is hopeless or unknown: the difference
        so far is not above ``margin``, an arm has fewer than 10 observations, the values do not vary, or it
        takes more than 10 million.

    Raises:
        ValueError: As for `mean_difference`; ``alpha`` or ``future_share`` is not between 0 and 1.

    Source: the best stake on estimates with mean d and variance v gains about d^2 / (2 v) in log wealth per
    observation: Kelly, A new interpretation of information rate, Bell System Technical Journal 35 (1956);
    Breiman, Optimal gambling systems for favorable games (1961).
    """
    check_margin(margin, lowest, highest)
    limit = threshold(alpha)
    if future_share is not None and not 0.0 < future_share < 1.0:
        raise ValueError(f"future_share must be between 0 and 1, not {future_share}")
    seen = drawn(values, is_new, share)
    gains, least, scale = weighted_differences(seen, lowest, highest)
    evidence = log_e_process(gains - margin, least - margin, scale)
    if evidence.rejects(alpha):
        return 0
    new, control = seen.values[seen.is_new], seen.values[~seen.is_new]
    if min(len(new), len(control)) < _FEWEST:
        return None
    next_share = float(seen.share[-1]) if future_share is None else future_share
    precise = seen.share * (1.0 - seen.share)
    excess = float(precise @ gains / precise.sum()) - margin
    variance = float(np.var(new, ddof=1)) / next_share + float(np.var(control, ddof=1)) / (1.0 - next_share)
    if not (excess > 0.0 and variance > 0.0):
        return None
    growth = excess**2 / (2.0 * (variance + excess**2))
    more = (limit - evidence.current) / growth
    return max(1, math.ceil(more)) if more <= _HOPELESS else None
