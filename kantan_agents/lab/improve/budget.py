"""``SearchSpending``: keeps a search within its budget; the sealed test is paid for before it begins."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kantan_agents.errors import ImproveBudgetError
from kantan_agents.lab.experiment.spending import Spending
from kantan_agents.lab.improve.arguments import ImproveArguments
from kantan_agents.lab.improve.parts import Parts
from kantan_agents.support.ledger import Amounts, LimitReachedError, Reservation


class BudgetUsedUpError(Exception):
    """What is next may exceed the budget, so the search ends."""


class SearchSpending(Spending):
    """Counts what a search uses, and reserves what the next call may use.

    Args:
        limits: The budget, as ``tokens`` and ``cost``.
    """

    def __init__(self, limits: Mapping[str, float]) -> None:
        super().__init__(limits)
        self._for_test = Reservation()

    @property
    def left_for_runs(self) -> dict[str, Any]:
        """What runs may use now, as ``max_tokens`` and ``max_cost`` of ``replay_cohort``.

        Raises:
            BudgetUsedUpError: Nothing is left.
        """
        left = self.left
        tokens = left.get("tokens")
        if not self.may_spend or (tokens is not None and tokens < 1):
            raise BudgetUsedUpError
        return {"max_tokens": None if tokens is None else int(tokens), "max_cost": left.get("cost")}

    def set_apart(self, estimate: Amounts) -> None:
        """Reserve what the sealed test is expected to use, in place of what was reserved for it before.

        Raises:
            BudgetUsedUpError: So much is not left; what was reserved before stays.
        """
        try:
            self._for_test = self.reserve(estimate, instead_of=self._for_test)
        except LimitReachedError:
            raise BudgetUsedUpError from None

    def begin_test(self) -> None:
        """Let the sealed test use what was reserved for it."""
        self.release(self._for_test)

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
        reserved = self.reservation({**known, "tokens": max(known.get("tokens", 0), at_least)})
        if reserved is None:
            raise BudgetUsedUpError
        try:
            yield
        finally:
            self.release(reserved)

    def count(self, tokens: int, cost: float | None, kind: Hashable | None = None) -> None:
        """Count what was used; without tokens it says nothing about the calls of its kind.

        Raises:
            ImproveBudgetError: E122, there is a limit of cost, and a model has no price.
        """
        if cost is None and tokens and "cost" in self.limits:
            reason = "a model that was asked has no price, so max_cost cannot be kept; name it in the prices"
            raise ImproveBudgetError(reason=reason)
        super().count(tokens, cost if tokens else cost or 0.0, kind if tokens else None)


def needed_for_test(asked: ImproveArguments, parts: Parts, spending: SearchSpending) -> Amounts:
    """Return what the sealed test may use: both versions on all sealed cases, and the judge.

    Args:
        asked: The arguments.
        parts: The recorded runs.
        spending: Knows what the judge uses.
    """
    runs = parts.estimates(parts.test_ids)
    judge = spending.estimate(["judge"])
    times = 2 + asked.max_cost_increase
    count = 2 * len(parts.test)
    return {name: (used or 0.0) * times + count * judge[name] for name, used in runs.items()}


def check_budget(asked: ImproveArguments, parts: Parts) -> None:
    """Check that the budget suffices for one candidate and its sealed test.

    Raises:
        ImproveBudgetError: E122, it does not, or nothing is known about what the runs use.
    """
    if not asked.limits:
        return
    size = min(asked.search.sample, len(parts.train))
    validation = [case.id for case in parts.validation]
    each = parts.estimates(parts.sources)
    rated_twice = parts.estimates([*parts.test_ids, *validation])
    for name, most in asked.limits.items():
        total, fixed = each[name], rated_twice[name]
        if total is None or fixed is None:
            reason = (
                "it cannot be estimated: the recorded runs do not say what they used, or a model has no price"
            )
            raise ImproveBudgetError(reason=reason)
        mean = total / len(parts.sources)
        runs = 2 * fixed + size * mean
        # A judge reads about what a run has written; nothing is known about it yet.
        judged = (
            (2 * (len(parts.test) + len(validation)) + 2 * size) * mean
            if asked.judge.source == "model"
            else 0
        )
        needed = runs + judged + mean
        if needed > most:
            what = "of cost" if name == "cost" else name
            reason = (
                f"one candidate takes about {needed:,.6g} {what}, with the sealed test, and the limit is "
                f"{most:,.6g}; raise it, or choose a smaller cohort"
            )
            raise ImproveBudgetError(reason=reason)
