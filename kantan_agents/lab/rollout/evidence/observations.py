"""What the tests are given: a value for each draw, its arm, and with which probability it got that arm."""

from __future__ import annotations

import attrs
import numpy as np
import numpy.typing as npt

from kantan_agents.lab.betting.running import Earlier, Flags, Floats, Times


@attrs.frozen(eq=False)
class Observations:
    """The observations that can say something: those whose arm was drawn at random.

    Attributes:
        values: Shape (used,).
        is_new: Shape (used,): whether the unit got the new arm, or else the control.
        share: Shape (used,): probability of the new arm, above 0 and below 1.
        used: Shape (given,): which of the given observations these are.
        earlier: Which of the values were known when each arm was drawn.
    """

    values: Floats
    is_new: Flags
    share: Floats
    used: Flags
    earlier: Earlier


def drawn(
    values: npt.ArrayLike, is_new: npt.ArrayLike, share: npt.ArrayLike, times: Times | None = None
) -> Observations:
    """Check the observations and leave out those with a share of 0 or 1, which have nothing to compare with.

    Args:
        values: Shape (observations,): in the order of assignment.
        is_new: Shape (observations,): True for the new arm, False for the control.
        share: Shape (observations,): probability of the new arm, from 0 to 1.
        times: When each arm was drawn and its value became known, each of shape (observations,); None if
            each value was known before the next arm was drawn.

    Raises:
        ValueError: Shapes differ, a value is not finite, an arm is not a boolean, or a share is out of range.
    """
    given = np.asarray(values, dtype=np.float64)
    arms = np.asarray(is_new)
    shares = np.asarray(share, dtype=np.float64)
    moments = [np.asarray(one, dtype=np.float64) for one in times or ()]
    if given.ndim != 1 or any(one.shape != given.shape for one in (arms, shares, *moments)):
        raise ValueError(
            f"values, is_new and share must be lists of the same length: "
            f"{given.shape}, {arms.shape}, {shares.shape}"
        )
    if not np.isfinite(given).all():
        raise ValueError("values must be finite numbers; leave out observations without a value")
    if len(arms) and not np.isin(arms, (0, 1)).all():
        raise ValueError("is_new must be True or False for each observation")
    if not ((shares >= 0.0) & (shares <= 1.0)).all():
        raise ValueError("each share must be a probability from 0 to 1")
    used = (shares > 0.0) & (shares < 1.0)
    known = None if not moments else (moments[0][used], moments[1][used])
    earlier = Earlier.of(int(used.sum()), known)
    return Observations(given[used], arms.astype(np.bool_)[used], shares[used], used, earlier)
