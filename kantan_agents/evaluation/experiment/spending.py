"""``Spending``: keeps the runs of an evaluation within its budget, by reservation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kantan_agents.errors import EvaluationBudgetError
from kantan_agents.evaluation.experiment.results import CaseResult
from kantan_agents.replay.experiment.prices import Estimate, Ledger, Limit

# What stands for the evaluators among the hashes of variants.
_JUDGES: Final = "judges"


class Spending:
    """Keeps the runs of an evaluation within its budget.

    Before a run begins, what the most expensive run of its variant has used so far is reserved for it, and
    what the evaluators of a run have used at most. A variant of which nothing is known is run once alone;
    with a budget, nothing else runs meanwhile.

    Args:
        limit: The budget.
        has_judges: Whether evaluators ask models.
    """

    def __init__(self, limit: Limit, *, has_judges: bool = False) -> None:
        self._limit = limit
        self._has_judges = has_judges
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

    def knows(self, variant: str | None) -> bool:
        """Return whether something is known about the runs of a variant; without one, about evaluators."""
        knows_judges = not self._has_judges or _JUDGES in self._known
        return knows_judges and (variant is None or variant in self._known)

    def reserve(self, variant: str | None) -> Estimate | None:
        """Reserve what a run and its evaluators may use; return None if that is more than what is left.

        Args:
            variant: The hash of the variant; None for the evaluators of a run that is stored.
        """
        run, judges = self._most(variant or ""), self._most(_JUDGES)
        estimate = Estimate(
            (run.tokens or 0.0) + (judges.tokens or 0.0), (run.cost or 0.0) + (judges.cost or 0.0)
        )
        if not self.may_spend or not self._ledger.reserve(estimate):
            return None
        return estimate

    def release(self, reserved: Estimate) -> None:
        """Give back what was reserved."""
        self._ledger.release(reserved)

    def spend_on_run(self, variant: str, result: CaseResult) -> None:
        """Count what a run has used."""
        self._spend(result.tokens, result.cost)
        self.learn([(variant, result)])

    def spend_on_scores(self, tokens: int, cost: float | None) -> None:
        """Count what the evaluators of a run have used."""
        self._spend(tokens, cost)
        known = self._most(_JUDGES)
        self._known[_JUDGES] = Estimate(
            max(known.tokens or 0.0, float(tokens)), max(known.cost or 0.0, cost or 0.0)
        )

    def _spend(self, tokens: int, cost: float | None) -> None:
        self._ledger.spend(tokens, cost if self._limit.max_cost is not None else 0.0)
        self.cost = None if self.cost is None or cost is None else self.cost + cost

    def _most(self, what: str) -> Estimate:
        return self._known.get(what, Estimate(0.0, 0.0))

    def used_up(self, done: int, total: int) -> EvaluationBudgetError:
        """Return the error that ends an evaluation whose budget does not suffice for the next run."""
        limits = {"tokens": self._limit.max_tokens, "cost": self._limit.max_cost}
        shown = " and ".join(f"{name} {value:,}" for name, value in limits.items() if value is not None)
        most = max((one.tokens or 0.0 for what, one in self._known.items() if what != _JUDGES), default=0.0)
        most += self._most(_JUDGES).tokens or 0.0
        if self._limit.max_cost is not None and self.cost is None:
            reason = f"the limit is {shown}, and a model that was asked has no price; name it in the prices"
            return EvaluationBudgetError(reason=reason)
        return EvaluationBudgetError(
            reason=(
                f"the limit is {shown}; {self.tokens:,} tokens were used, and one run takes up to "
                f"{most:,.0f}. {done} of {total} runs are kept; start it again with a higher limit, and it "
                "goes on"
            )
        )
