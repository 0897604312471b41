"""Keeps an experiment within its budget."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.experiment.prices import Prices, is_price
from kantan_agents.support.arguments import checked_int
from kantan_agents.support.ledger import Amounts, Ledger, LimitReachedError, Reservation


def spending_limits(max_tokens: int | None, max_cost: float | None, prices: Prices) -> Mapping[str, float]:
    """Return the limits; E75 for an invalid one or a missing price."""
    if max_tokens is not None:
        checked_int("max_tokens", max_tokens, 1)
    if max_cost is not None:
        if not is_price(max_cost):
            raise InvalidOptionError(option="max_cost", reason=f"must be a number from 0, not {max_cost!r}")
        if not prices.of_models:
            reason = "needs prices: prices={'model': (input, output)} per million tokens"
            raise InvalidOptionError(option="max_cost", reason=reason)
    limits = {"tokens": max_tokens, "cost": max_cost}
    return {name: most for name, most in limits.items() if most is not None}


class Spending(Ledger):
    """The usage of an experiment within its limits.

    Each call reserves the highest usage of its kind, such as a judge, so far.
    """

    @property
    def tokens(self) -> int:
        """The tokens used."""
        return int(self.used.get("tokens", 0))

    @property
    def cost(self) -> float | None:
        """Their price; None if a model has no price."""
        return self.known("cost")

    def knows(self, kinds: Iterable[Hashable]) -> bool:
        """Return whether each kind has had a call."""
        return all(self.largest(kind) is not None for kind in kinds)

    def estimate(self, kinds: Iterable[Hashable]) -> Mapping[str, float]:
        """Return the estimate; unknown kinds count as 0."""
        known = [one for kind in kinds if (one := self.largest(kind)) is not None]
        return {name: sum(one[name] for one in known) for name in ("tokens", "cost")}

    def count(self, tokens: int, cost: float | None, kind: Hashable | None = None) -> None:
        """Count usage, as one call of its kind."""
        used = {"tokens": tokens, "cost": cost}
        self.spend(used)
        if kind is not None:
            self.learn(kind, used)

    def reservation(self, amounts: Amounts) -> Reservation | None:
        """Reserve amounts; None if they exceed the rest."""
        if amounts and not self.may_spend:
            return None
        try:
            return self.reserve(amounts)
        except LimitReachedError:
            return None
