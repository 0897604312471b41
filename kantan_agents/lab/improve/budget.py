"""``SearchSpending``: keeps a search within its budget; the sealed test is paid for before it begins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kantan_agents.errors import ImproveBudgetError
from kantan_agents.support.ledger import Amounts, Ledger, LimitReachedError, Reservation


class BudgetUsedUpError(Exception):
    """What is next may exceed the budget, so the search ends."""


class SearchSpending:
    """Counts what a search uses, and reserves what the next call may use.

    Args:
        limits: The budget, as ``tokens`` and ``cost``.
    """

    def __init__(self, limits: Mapping[str, float]) -> None:
        self.limits = limits
        self._ledger = Ledger(limits)
        self._for_test = Reservation()

    @property
    def tokens(self) -> int:
        """The tokens that were used."""
        return int(self._ledger.used.get("tokens", 0))

    @property
    def cost(self) -> float | None:
        """What was used, in the currency of the prices; None if a model has no price."""
        return self._ledger.known("cost")

    @property
    def left(self) -> dict[str, Any]:
        """What runs may use now, as ``max_tokens`` and ``max_cost`` of ``replay_cohort``.

        Raises:
            BudgetUsedUpError: Nothing is left.
        """
        left = self._ledger.left
        tokens = left.get("tokens")
        if not self._ledger.may_spend or (tokens is not None and tokens < 1):
            raise BudgetUsedUpError
        return {"max_tokens": None if tokens is None else int(tokens), "max_cost": left.get("cost")}

    def set_apart(self, estimate: Amounts) -> None:
        """Reserve what the sealed test is expected to use, in place of what was reserved for it before.

        Raises:
            BudgetUsedUpError: So much is not left; what was reserved before stays.
        """
        try:
            self._for_test = self._ledger.reserve(estimate, instead_of=self._for_test)
        except LimitReachedError:
            raise BudgetUsedUpError from None

    def begin_test(self) -> None:
        """Let the sealed test use what was reserved for it."""
        self._ledger.release(self._for_test)

    def largest(self, what: str) -> Mapping[str, float] | None:
        """Return the most that one call of a kind has used so far; None if none was made."""
        return self._ledger.largest(what)

    @contextmanager
    def reserved(self, what: str, at_least: int = 0) -> Iterator[None]:
        """Reserve what a call of a kind may use, until the end of the block.

        Args:
            what: The kind of call; the most that one has used so far is reserved.
            at_least: How many tokens are reserved at least.

        Raises:
            BudgetUsedUpError: So much is not left.
        """
        known = self.largest(what) or {}
        if not self._ledger.may_spend:
            raise BudgetUsedUpError
        try:
            reserved = self._ledger.reserve({**known, "tokens": max(known.get("tokens", 0), at_least)})
        except LimitReachedError:
            raise BudgetUsedUpError from None
        try:
            yield
        finally:
            self._ledger.release(reserved)

    def spend(self, tokens: int, cost: float | None, what: str | None = None) -> None:
        """Count what was used.

        Args:
            tokens: Input and output tokens.
            cost: Their price; None if it is not known.
            what: The kind of call, to know what the next one may use.

        Raises:
            ImproveBudgetError: E122, there is a limit of cost, and a model has no price.
        """
        if cost is None and tokens and "cost" in self.limits:
            reason = "a model that was asked has no price, so max_cost cannot be kept; name it in the prices"
            raise ImproveBudgetError(reason=reason)
        used = {"tokens": tokens, "cost": cost if tokens else cost or 0.0}
        self._ledger.spend(used)
        if what is not None and tokens:
            self._ledger.learn(what, used)
