"""Assigns users by a keyed hash, so that every process decides alike."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

import attrs

_BITS: Final = 53  # the digits of a float; with more, a fraction could be rounded up to 1
_STEP: Final = 2.0**-_BITS
_HALF: Final = 8
"""Bytes of the digest for each of its two numbers."""


@attrs.frozen
class Assigned:
    """The arm of a user, 0 for the control, and a pseudonym."""

    arm: int
    unit: str


class Assignment:
    """Assigns users to arms.

    A user has two fixed numbers in [0, 1): one against the share of all new arms, one to choose among these.
    When that share grows, users move from the control to their new arm, and never in any other way.
    """

    __slots__ = ("_bounds", "_key", "_proportions")

    def __init__(self, key: str, weights: Sequence[float]) -> None:
        self._key = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
        total = sum(weights)
        self._proportions = tuple(weight / total for weight in weights)
        # The last bound is omitted: whatever is above all others belongs to the last arm.
        self._bounds = tuple(accumulate(self._proportions))[:-1]

    def of(self, unit: str, share: float) -> Assigned:
        """Return the arm of a user at a ``share`` of all new arms together."""
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
        """Return the probability of an arm at a ``share`` of all new arms together."""
        return 1.0 - share if arm == 0 else share * self._proportions[arm - 1]


def _fraction(eight: bytes) -> float:
    return (int.from_bytes(eight, "big") >> (64 - _BITS)) * _STEP
