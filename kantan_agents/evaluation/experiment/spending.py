"""``Spending``: keeps the runs of an evaluation within its budget, by reservation."""

from __future__ import annotations

from collections.abc import Iterable

from kantan_agents.errors import EvaluationBudgetError
from kantan_agents.evaluation.experiment.results import CaseResult
from kantan_agents.replay.experiment.prices import Estimate, Ledger, Limit


class Spending:
    """Keeps the runs of an evaluation within its budget.

    Before a run begins, what the most expensive run of its variant has used so far is reserved for it. A
    variant of which nothing is known is run once alone; with a budget, nothing else runs meanwhile.

    Args:
        limit: The budget.
    """

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._ledger = Ledger(limit)
        self._known: dict[str, Estimate] = {}
        self.cost: float | None = 0.0

    @property
    def tokens(self) -> int:
        """The tokens that were used."""
        return int(self._ledger.tokens)

    @property
    def is_limited(self) -> bool:
        """Whether there is a budget."""
        return self._limit.is_set

    @property
    def may_spend(self) -> bool:
        """Whether something of the budget is left."""
        return self._ledger.may_spend

    def learn(self, results: Iterable[tuple[str, CaseResult]]) -> None:
        """Learn what runs use from earlier results, each with the hash of its variant."""
        for variant, result in results:
            if result.status == "failed" and not result.tokens:
                continue  # it has failed before it asked a model
            known = self._known.get(variant, Estimate(0.0, 0.0))
            self._known[variant] = Estimate(
                max(known.tokens or 0.0, float(result.tokens)), max(known.cost or 0.0, result.cost or 0.0)
            )

    def knows(self, variant: str) -> bool:
        """Return whether something is known about the runs of a variant."""
        return variant in self._known

    def reserve(self, variant: str) -> Estimate | None:
        """Reserve what a run may use; return None if that is more than what is left."""
        estimate = self._known.get(variant, Estimate(0.0, 0.0))
        if not self.may_spend or not self._ledger.reserve(estimate):
            return None
        return estimate

    def settle(self, variant: str, reserved: Estimate, result: CaseResult) -> None:
        """Replace what was reserved for a run by what it has used."""
        self._ledger.release(reserved)
        self._ledger.spend(result.tokens, result.cost if self._limit.max_cost is not None else 0.0)
        self.cost = None if self.cost is None or result.cost is None else self.cost + result.cost
        self.learn([(variant, result)])

    def used_up(self, done: int, total: int) -> EvaluationBudgetError:
        """Return the error that ends an evaluation whose budget does not suffice for the next run."""
        limits = {"tokens": self._limit.max_tokens, "cost": self._limit.max_cost}
        shown = " and ".join(f"{name} {value:,}" for name, value in limits.items() if value is not None)
        most = max((one.tokens or 0.0 for one in self._known.values()), default=0.0)
        return EvaluationBudgetError(
            reason=(
                f"the limit is {shown}; {self.tokens:,} tokens were used, and one run takes up to "
                f"{most:,.0f}. {done} of {total} runs are kept; start it again with a higher limit, and it "
                "goes on"
            )
        )
