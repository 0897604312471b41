"""``SearchSpending``: keeps a search within its budget; the sealed test is paid for before it begins."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kantan_agents.errors import ImproveBudgetError
from kantan_agents.lab.replay.experiment.prices import Estimate, ExperimentLedger, SpendingLimit

NOTHING = Estimate(0.0, 0.0)


class BudgetUsedUpError(Exception):
    """What is next may exceed the budget, so the search ends."""


class SearchSpending:
    """Counts what a search uses, and reserves what the next call may use.

    Args:
        limit: The budget.

    Attributes:
        cost: What was used, in the currency of the prices; None if a model has no price.
    """

    def __init__(self, limit: SpendingLimit) -> None:
        self.limit = limit
        self.cost: float | None = 0.0
        self._ledger = ExperimentLedger(limit)
        self._for_test = NOTHING
        self._largest: dict[str, Estimate] = {}

    @property
    def tokens(self) -> int:
        """The tokens that were used."""
        return int(self._ledger.tokens)

    @property
    def left(self) -> dict[str, Any]:
        """What runs may use now, as ``max_tokens`` and ``max_cost`` of ``replay_cohort``.

        Raises:
            BudgetUsedUpError: Nothing is left.
        """
        left = self._ledger.left
        if not self._ledger.may_spend or (left.tokens is not None and left.tokens < 1):
            raise BudgetUsedUpError
        return {
            "max_tokens": None if left.tokens is None else int(left.tokens),
            "max_cost": left.cost,
        }

    def set_apart(self, estimate: Estimate) -> bool:
        """Reserve what the sealed test is expected to use, in place of what was reserved for it before.

        Returns:
            Whether so much is left; otherwise what was reserved before stays.
        """
        self._ledger.release(self._for_test)
        known = Estimate(estimate.tokens or 0.0, estimate.cost or 0.0)
        if self._ledger.reserve(known):
            self._for_test = known
            return True
        self._ledger.reserve(self._for_test)
        return False

    def begin_test(self) -> None:
        """Let the sealed test use what was reserved for it."""
        self._ledger.release(self._for_test)
        self._for_test = NOTHING

    def largest(self, what: str) -> Estimate | None:
        """Return the most that one call of a kind has used so far; None if none was made."""
        return self._largest.get(what)

    @contextmanager
    def reserved(self, what: str, at_least: Estimate = NOTHING) -> Iterator[None]:
        """Reserve what a call of a kind may use, until the end of the block.

        Args:
            what: The kind of call; the most that one has used so far is reserved.
            at_least: What is reserved at least.

        Raises:
            BudgetUsedUpError: So much is not left.
        """
        known = self._largest.get(what, NOTHING)
        wanted = Estimate(
            max(known.tokens or 0.0, at_least.tokens or 0.0), max(known.cost or 0.0, at_least.cost or 0.0)
        )
        if not self._ledger.may_spend or not self._ledger.reserve(wanted):
            raise BudgetUsedUpError
        try:
            yield
        finally:
            self._ledger.release(wanted)

    def spend(self, tokens: int, cost: float | None, what: str | None = None) -> None:
        """Count what was used.

        Args:
            tokens: Input and output tokens.
            cost: Their price; None if it is not known.
            what: The kind of call, to know what the next one may use.

        Raises:
            ImproveBudgetError: E122, there is a limit of cost, and a model has no price.
        """
        if cost is None and tokens and self.limit.max_cost is not None:
            reason = "a model that was asked has no price, so max_cost cannot be kept; name it in the prices"
            raise ImproveBudgetError(reason=reason)
        self._ledger.spend(tokens, cost or 0.0)
        self.cost = None if self.cost is None or (cost is None and tokens) else self.cost + (cost or 0.0)
        if what is not None and tokens:
            known = self._largest.get(what, NOTHING)
            self._largest[what] = Estimate(
                max(known.tokens or 0.0, float(tokens)), max(known.cost or 0.0, cost or 0.0)
            )
