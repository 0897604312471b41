"""The input of the tests: values, arms and their probabilities."""

from __future__ import annotations

import attrs
import numpy as np
import numpy.typing as npt

from kantan_agents.lab.betting.running import Earlier, Flags, Floats, Times


@attrs.frozen(eq=False)
class Observations:
    """The observations whose arm was random; others carry no information."""

    values: Floats
    is_new: Flags
    share: Floats
    used: Flags
    earlier: Earlier


def drawn(
    values: npt.ArrayLike, is_new: npt.ArrayLike, share: npt.ArrayLike, times: Times | None = None
) -> Observations:
    """Check the observations, and omit those with a share of 0 or 1, which have nothing to compare with.

    Without ``times``, each value was known before the next assignment.
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
