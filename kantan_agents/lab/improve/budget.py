"""``SearchSpending``: limits a search, with the held-out test paid for in advance."""

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
    """The next step may exceed the budget, so the search stops."""


class SearchSpending(Spending):
    """Counts usage, and reserves the estimate of the next call."""

    def __init__(self, limits: Mapping[str, float]) -> None:
        super().__init__(limits)
        self._for_test = Reservation()

    @property
    def left_for_runs(self) -> dict[str, Any]:
        """The remaining budget for ``replay_cohort``; raises if nothing remains."""
        left = self.left
        tokens = left.get("tokens")
        if not self.may_spend or (tokens is not None and tokens < 1):
            raise BudgetUsedUpError
        return {"max_tokens": None if tokens is None else int(tokens), "max_cost": left.get("cost")}

    def set_apart(self, estimate: Amounts) -> None:
        """Reserve the held-out test; on errors, an earlier reservation stays."""
        try:
            self._for_test = self.reserve(estimate, instead_of=self._for_test)
        except LimitReachedError:
            raise BudgetUsedUpError from None

    def begin_test(self) -> None:
        """Release the reservation for the held-out test."""
        self.release(self._for_test)

    @contextmanager
    def reserved(self, what: str, at_least: int = 0) -> Iterator[None]:
        """Reserve the usage of a call: the most of its kind so far, or ``at_least``."""
        known = self.largest(what) or {}
        reserved = self.reservation({**known, "tokens": max(known.get("tokens", 0), at_least)})
        if reserved is None:
            raise BudgetUsedUpError
        try:
            yield
        finally:
            self.release(reserved)

    def count(self, tokens: int, cost: float | None, kind: Hashable | None = None) -> None:
        """Count usage; of its kind if tokens were used. E122 if a limited cost is unknown."""
        if cost is None and tokens and "cost" in self.limits:
            reason = "a model that was asked has no price, so max_cost cannot be kept; name it in the prices"
            raise ImproveBudgetError(reason=reason)
        super().count(tokens, cost if tokens else cost or 0.0, kind if tokens else None)


def needed_for_test(asked: ImproveArguments, parts: Parts, spending: SearchSpending) -> Amounts:
    """Return the estimate of the held-out test: runs of both versions, and the judge."""
    runs = parts.estimates(parts.test_ids)
    judge = spending.estimate(["judge"])
    times = 2 + asked.max_cost_increase
    count = 2 * len(parts.test)
    return {name: (used or 0.0) * times + count * judge[name] for name, used in runs.items()}


def check_budget(asked: ImproveArguments, parts: Parts) -> None:
    """Raise E122 unless the budget covers one candidate and its held-out test."""
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
        # A judge reads about as much as a run has written; its usage is still unknown.
        judged = (
            (2 * (len(parts.test) + len(validation)) + 2 * size) * mean
            if asked.judge.source == "model"
            else 0
        )
        needed = runs + judged + mean
        if needed > most:
            what = "of cost" if name == "cost" else name
            reason = (
                f"one candidate takes about {needed:,.6g} {what}, with the held-out test, and the limit is "
                f"{most:,.6g}; raise it, or choose a smaller cohort"
            )
            raise ImproveBudgetError(reason=reason)
