"""Assigns units to the arms of a rollout: by a keyed hash, so that every process decides alike."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import attrs

_BITS: Final = 53  # the digits of a float; with more of them, a fraction could be rounded up to 1
_STEP: Final = 2.0**-_BITS
_HALF: Final = 8
"""Bytes of the digest for each of its two numbers."""


@attrs.frozen
class Assigned:
    """The arm of a unit.

    Attributes:
        arm: Number of the arm; 0 is the control.
        unit: What identifies the unit in the records without naming it: 16 hexadecimal digits.
    """

    arm: int
    unit: str


class Assignment:
    """Assigns units to arms.

    A unit has two fixed numbers in [0, 1). It has a new arm if the first is below the share of all new arms
    together; the second chooses among these, by their fixed proportions. So when that share grows, units
    move from the control to their new arm, and no unit moves in any other way.

    Args:
        key: What the hash is keyed with: the name of the rollout.
        weights: The weight of each new arm, in their order; all above 0.
    """

    __slots__ = ("_bounds", "_key", "_proportions")

    def __init__(self, key: str, weights: Sequence[float]) -> None:
        self._key = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
        total = sum(weights)
        self._proportions = tuple(weight / total for weight in weights)
        # The last bound is left out: whatever is above all others belongs to the last arm.
        self._bounds = tuple(accumulate(self._proportions))[:-1]

    def of(self, unit: str, share: float) -> Assigned:
        """Return the arm of a unit.

        Args:
            unit: The unit, such as the id of a user.
            share: The share of all new arms together, 0 to 1.
        """
        digest = hashlib.blake2b(
            unit.encode("utf-8", "surrogatepass"), digest_size=2 * _HALF, key=self._key
        ).digest()
        name = digest.hex()[: 2 * _HALF]
        if _fraction(digest[:_HALF]) >= share:
            return Assigned(0, name)
        arm = 1
        if self._bounds:
            second = _fraction(digest[_HALF:])
            arm += sum(second >= bound for bound in self._bounds)
        return Assigned(arm, name)

    def share_of(self, arm: int, share: float) -> float:
        """Return the probability of an arm.

        Args:
            arm: Its number; 0 is the control.
            share: The share of all new arms together, 0 to 1.
        """
        return 1.0 - share if arm == 0 else share * self._proportions[arm - 1]


def _fraction(eight: bytes) -> float:
    return (int.from_bytes(eight, "big") >> (64 - _BITS)) * _STEP
