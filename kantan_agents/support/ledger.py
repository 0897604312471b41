"""``Ledger``: amounts with limits."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from threading import Lock
from typing import Final

import attrs

Amounts = Mapping[str, "float | None"]
"""Such as ``{"tokens": 1200, "cost": None}``; None if unknown."""

_NOTHING: Final[Mapping[str, float]] = {}


@attrs.define
class LimitReachedError(Exception):
    """A reservation would exceed a limit; ``taken`` is used or reserved."""

    name: str
    limit: float
    taken: float


@attrs.frozen(eq=False)
class Reservation:
    """A call's reserved amounts."""

    amounts: Mapping[str, float] = attrs.field(factory=dict)


class Ledger:
    """Thread-safe. Missing limits and None are unlimited."""

    def __init__(self, limits: Amounts) -> None:
        self.limits: Mapping[str, float] = {name: most for name, most in limits.items() if most is not None}
        self._lock = Lock()
        self._used: dict[str, float] = {}
        self._reserved: set[Reservation] = set()
        self._largest: dict[Hashable, Mapping[str, float]] = {}

    @property
    def used(self) -> dict[str, float]:
        """An amount is ``math.inf`` once it is unknown."""
        with self._lock:
            return dict(self._used)

    def known(self, name: str) -> float | None:
        """None once it is unknown."""
        used = self._used.get(name, 0.0)
        return None if used == math.inf else used

    @property
    def in_progress(self) -> int:
        """Number of reservations."""
        return len(self._reserved)

    @property
    def left(self) -> dict[str, float]:
        """Neither used nor reserved."""
        with self._lock:
            return {name: max(most - self._taken(name), 0) for name, most in self.limits.items()}

    @property
    def may_spend(self) -> bool:
        """With a limit of 0, free calls are allowed."""
        used = ((self._used.get(name, 0), most) for name, most in self.limits.items())
        return all(spent < most or spent == most == 0 for spent, most in used)

    def reserve(
        self,
        wanted: Amounts,
        assumed: Mapping[str, float] = _NOTHING,
        *,
        instead_of: Reservation | None = None,
    ) -> Reservation:
        """Reserve amounts, or raise ``LimitReachedError`` without a change.

        None is allowed while anything is left, and reserves the ``assumed`` amount. The new reservation
        replaces ``instead_of``.
        """
        with self._lock:
            for name, more in wanted.items():
                most = self.limits.get(name)
                if most is None:
                    continue
                taken = self._taken(name, instead_of)
                if taken >= most if more is None else _exceeds(taken + more, most):
                    raise LimitReachedError(name, most, taken)
            made = {name: assumed.get(name, 0) if more is None else more for name, more in wanted.items()}
            if instead_of is not None:
                self._reserved.discard(instead_of)
            reservation = Reservation(made)
            self._reserved.add(reservation)
        return reservation

    def release(self, reservation: Reservation, used: Amounts = _NOTHING) -> None:
        """Replace a reservation with used amounts."""
        with self._lock:
            self._reserved.discard(reservation)
            self._count(used)

    def spend(self, used: Amounts) -> None:
        """An unknown amount exceeds each limit."""
        with self._lock:
            self._count(used)

    def reset(self) -> None:
        """Reservations stay."""
        with self._lock:
            self._used = {}

    def learn(self, kind: Hashable, used: Amounts) -> None:
        """Record the amounts of one call."""
        with self._lock:
            before = self._largest.get(kind, _NOTHING)
            self._largest[kind] = {name: max(before.get(name, 0), more or 0) for name, more in used.items()}

    def largest(self, kind: Hashable) -> Mapping[str, float] | None:
        """Return the maximum of each amount."""
        return self._largest.get(kind)

    def _taken(self, name: str, without: Reservation | None = None) -> float:
        reserved = sum(one.amounts.get(name, 0) for one in self._reserved if one is not without)
        return self._used.get(name, 0) + reserved

    def _count(self, used: Amounts) -> None:
        for name, more in used.items():
            self._used[name] = self._used.get(name, 0) + (math.inf if more is None else more)


def _exceeds(total: float, most: float) -> bool:
    # Sums of the same floats in another order differ in their last digits.
    return total > most and not math.isclose(total, most)
