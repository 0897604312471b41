"""``Sample``: values of one measure, one for each unit, as the tests need them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs
import numpy as np
import numpy.typing as npt

from kantan_agents.lab.rollout.observed.run import Drawn


@attrs.frozen(eq=False)
class Sample:
    """Values of one measure, one for each unit, in the order in which they became known.

    Attributes:
        values: Shape (units,).
        arms: Shape (units,): number of the arm; 0 is the control.
        shares: Shape (units,): the share of all new arms together when the arm was drawn.
    """

    values: npt.NDArray[np.float64]
    arms: npt.NDArray[np.int64]
    shares: npt.NDArray[np.float64]

    def of_arm(self, arm: int) -> npt.NDArray[np.float64]:
        """Return the values of one arm."""
        chosen: npt.NDArray[np.float64] = self.values[self.arms == arm]
        return chosen

    def against_control(self, arm: int, weight: float) -> tuple[Any, Any, Any]:
        """Return the values of an arm and the control, which are of the arm, and with which probability.

        Args:
            arm: Number of the arm.
            weight: Its proportion among the new arms.
        """
        chosen = (self.arms == arm) | (self.arms == 0)
        of_arm = self.shares[chosen] * weight
        of_both = of_arm + (1.0 - self.shares[chosen])
        share = np.divide(of_arm, of_both, out=np.zeros_like(of_arm), where=of_both > 0)
        return self.values[chosen], self.arms[chosen] == arm, np.clip(share, 0.0, 1.0)


def sample_of(pairs: Iterable[tuple[Drawn, float]]) -> Sample:
    """Return the sample of values.

    Args:
        pairs: For each unit how it got its arm, and its value, in order.
    """
    kept = list(pairs)
    return Sample(
        np.array([value for _, value in kept], dtype=np.float64),
        np.array([drawn.arm for drawn, _ in kept], dtype=np.int64),
        np.array([drawn.share for drawn, _ in kept], dtype=np.float64),
    )
