"""``Interval``: the bounds of a confidence interval."""

from __future__ import annotations

from typing import NamedTuple


class Interval(NamedTuple):
    """The bounds of a confidence interval, in the units of what was estimated."""

    low: float
    high: float

    def negated(self) -> Interval:
        """Return the interval of the negated quantity."""
        return Interval(-self.high, -self.low)


def check_level(level: float) -> None:
    """Check a confidence level.

    Raises:
        ValueError: It is not between 0 and 1.
    """
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be between 0 and 1, not {level}")
