"""``EvaluationSpending``: keeps the runs of an evaluation within its budget, by reservation."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kantan_agents.errors import EvaluationBudgetError
from kantan_agents.lab.evaluation.evaluators.evaluator import Evaluator
from kantan_agents.lab.evaluation.experiment.results import CaseResult
from kantan_agents.lab.replay.experiment.prices import Estimate, ExperimentLedger, SpendingLimit

_NOTHING = Estimate(0.0, 0.0)


class EvaluationSpending:
    """Keeps the runs of an evaluation, and the judges of its evaluators, within its budget.

    Before a run begins, what the most expensive run of its variant has used so far is reserved for it, and
    what each of its evaluators has used at most. A variant or a judge of which nothing is known is asked once
    alone; with a budget, nothing else runs meanwhile.

    Args:
        limit: The budget.
    """

    def __init__(self, limit: SpendingLimit) -> None:
        self._limit = limit
        self._ledger = ExperimentLedger(limit)
        self._runs: dict[str, Estimate] = {}
        self._evaluators: dict[str, Estimate] = {}
        self.cost: float | None = 0.0

    @property
    def tokens(self) -> int:
        """The tokens that were used."""
        return int(self._ledger.tokens)

    @property
    def is_limited(self) -> bool:
        """Whether there is a budget."""
        return self._limit.is_set

    def learn(self, results: Iterable[tuple[str, CaseResult]]) -> None:
        """Learn what runs use from earlier results, each with the hash of its variant."""
        for variant, result in results:
            if result.status == "failed" and not result.tokens:
                continue  # it has failed before it asked a model
            _learn(self._runs, variant, result.tokens, result.cost)

    def knows(self, variant: str | None, evaluators: Collection[Evaluator]) -> bool:
        """Return whether it is known what a run of a variant and its evaluators use.

        Args:
            variant: The hash of the variant; None if there is a result, which is only to be scored.
            evaluators: Those that are to be asked about it.
        """
        knows_run = variant is None or variant in self._runs
        judges = (one.name for one in evaluators if one.source == "model")
        return knows_run and all(name in self._evaluators for name in judges)

    def reserve(self, variant: str | None, evaluators: Collection[Evaluator]) -> Estimate | None:
        """Reserve what a run and its evaluators may use; return None if that is more than what is left.

        Args:
            variant: As for ``knows``.
            evaluators: As for ``knows``.
        """
        estimate = self._estimate(variant, evaluators)
        if variant is None and not estimate.tokens and not any(one.source == "model" for one in evaluators):
            return estimate  # code costs nothing, also if nothing is left
        if not self._ledger.may_spend or not self._ledger.reserve(estimate):
            return None
        return estimate

    def release(self, reserved: Estimate) -> None:
        """Give back what was reserved."""
        self._ledger.release(reserved)

    def spend_on_run(self, variant: str, result: CaseResult) -> None:
        """Count what a run has used."""
        self._spend(result.tokens, result.cost)
        self.learn([(variant, result)])

    def spend_on_scores(self, evaluator: str, tokens: int, cost: float | None, *, has_scored: bool) -> None:
        """Count what an evaluator has used for one result.

        Args:
            evaluator: Its name.
            tokens: Input and output tokens.
            cost: Their price; None if it is not known.
            has_scored: Whether it has given a score: otherwise, without tokens, it may not have asked yet.
        """
        self._spend(tokens, cost)
        if tokens or has_scored:
            _learn(self._evaluators, evaluator, tokens, cost)

    def used_up(
        self, variant: str | None, evaluators: Collection[Evaluator], done: int, total: int
    ) -> EvaluationBudgetError:
        """Return the error that ends an evaluation whose budget does not suffice for what is next.

        Args:
            variant: As for ``knows``.
            evaluators: As for ``knows``.
            done: Number of runs that are kept.
            total: Number of all runs.
        """
        limits = {"tokens": self._limit.max_tokens, "cost": self._limit.max_cost}
        shown = " and ".join(f"{name} {value:,}" for name, value in limits.items() if value is not None)
        if self._limit.max_cost is not None and self.cost is None:
            reason = f"the limit is {shown}, and a model that was asked has no price; name it in the prices"
            return EvaluationBudgetError(reason=reason)
        next_one = self._estimate(variant, evaluators).tokens or 0.0
        what = "one run takes" if variant is not None else "the judges of one result take"
        kept = "are kept" if variant is not None else "are kept, some of them without all scores"
        return EvaluationBudgetError(
            reason=(
                f"the limit is {shown}; {self.tokens:,} tokens were used, and {what} up to {next_one:,.0f}. "
                f"{done} of {total} runs {kept}; start it again with a higher limit, and it goes on"
            )
        )

    def _estimate(self, variant: str | None, evaluators: Collection[Evaluator]) -> Estimate:
        parts = [self._evaluators.get(one.name, _NOTHING) for one in evaluators]
        if variant is not None:
            parts.append(self._runs.get(variant, _NOTHING))
        return Estimate(sum(one.tokens or 0.0 for one in parts), sum(one.cost or 0.0 for one in parts))

    def _spend(self, tokens: int, cost: float | None) -> None:
        self._ledger.spend(tokens, cost if self._limit.max_cost is not None else 0.0)
        self.cost = None if self.cost is None or cost is None else self.cost + cost


def _learn(known: dict[str, Estimate], what: str, tokens: int, cost: float | None) -> None:
    before = known.get(what, _NOTHING)
    known[what] = Estimate(max(before.tokens or 0.0, float(tokens)), max(before.cost or 0.0, cost or 0.0))
