"""Whether users got the arms with the planned probabilities."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from kantan_agents.lab.betting.wealth import Evidence, log_wealths, mixed, with_skipped
from kantan_agents.lab.rollout.evidence.observations import drawn


def sample_ratio(is_new: npt.ArrayLike, share: npt.ArrayLike) -> Evidence:
    """Return the evidence that the new arm is more or less frequent than planned.

    The hypothesis: given all earlier assignments, each user gets the new arm with the probability ``share``.
    If it is rejected, something loses or adds users of one arm, and no other comparison of the arms can be
    trusted.

    Half of the initial wealth bets on more users in the new arm, and half on fewer.

    Args:
        is_new: Shape (observations,): True for the new arm, False for the control, in the order of
            assignment.
        share: Shape (observations,): the planned probability of the new arm. Where it is 0 or 1, the planned
            arm gives no evidence, and the other arm is impossible: the evidence is infinite from there on.

    Raises:
        ValueError: Shapes differ, an arm is not a boolean, or a share is not a probability.

    Source: Lindon and Malek, Anytime-valid inference for multinomial count data, Advances in Neural
    Information Processing Systems 35 (2022), for a sequential test of the ratio; the bets as for
    `log_e_process`. For the meaning of a mismatch: Fabijan et al., Diagnosing sample ratio mismatch in online
    controlled experiments, KDD 2019.
    """
    seen = drawn(np.zeros(np.shape(is_new)), is_new, share)
    surplus = seen.is_new - seen.share
    scale = np.sqrt(seen.share * (1.0 - seen.share))
    more = mixed(log_wealths(surplus, -seen.share, scale))
    fewer = mixed(log_wealths(-surplus, seen.share - 1.0, scale))
    # Each of both is on average 1 at most, and so is their average.
    evidence = with_skipped(Evidence(np.logaddexp(more, fewer) - math.log(2.0)), seen.used)
    impossible = ~seen.used & (np.asarray(is_new, dtype=np.bool_) != (np.asarray(share) == 1.0))
    return Evidence(np.where(np.logical_or.accumulate(impossible), np.inf, evidence.path))
