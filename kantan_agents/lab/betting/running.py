"""Means and quantiles of known values, so that bets depend on nothing later."""

from __future__ import annotations

from typing import Final, TypeAlias

import attrs
import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Times: TypeAlias = tuple[npt.ArrayLike, npt.ArrayLike]
"""Times, in seconds, of each assignment and of each value (infinity: not yet known)."""

GRACE_SECONDS: Final = 2.0
"""How long a bet waits for the values of earlier assignments."""
_GROWTH: Final = 1.1


@attrs.frozen(eq=False)
class Earlier:
    """The values known at each assignment.

    The first ``known`` of ``order``, first known first, are known each time.
    """

    order: npt.NDArray[np.intp]
    known: npt.NDArray[np.intp]

    @classmethod
    def of(cls, size: int, times: tuple[Floats, Floats] | None = None) -> Earlier:
        """Return the known values; without times, all earlier ones."""
        if times is None:
            return cls(np.arange(size), np.arange(size))
        began, ended = times
        first = np.searchsorted(began, ended - GRACE_SECONDS, side="right")
        first = np.maximum(first, np.arange(1, size + 1))  # the first assignment that knows the value
        order = np.argsort(first, kind="stable")
        return cls(order, np.searchsorted(first[order], np.arange(size), side="right"))


def running_mean(values: Floats, start: float, earlier: Earlier | None = None) -> Floats:
    """Return the mean of ``start`` and all values known at each assignment."""
    earlier = earlier or Earlier.of(len(values))
    sums = np.concatenate(([0.0], np.cumsum(values[earlier.order])))
    result: Floats = (start + sums[earlier.known]) / (1.0 + earlier.known)
    return result


def running_quantile(
    values: Floats, counts: Flags, quantile: float, fewest: int, earlier: Earlier | None = None
) -> Floats:
    """Return a quantile of the known values that count at each assignment; NaN below ``fewest``.

    It is computed anew whenever a tenth more values are known. So the time is linear, and the moment depends
    on earlier observations only.
    """
    earlier = earlier or Earlier.of(len(values))
    counted_in_order = counts[earlier.order]
    counted = values[earlier.order][counted_in_order]
    known = np.concatenate(([0], np.cumsum(counted_in_order)))[earlier.known]
    most = int(known.max()) if len(known) else 0
    times: list[int] = []
    time = fewest
    while time <= most:
        times.append(time)
        time = max(time + 1, int(time * _GROWTH))
    found = [np.nan, *(float(np.quantile(counted[:time], quantile)) for time in times)]
    result: Floats = np.array(found)[np.searchsorted(times, known, side="right")]
    return result
