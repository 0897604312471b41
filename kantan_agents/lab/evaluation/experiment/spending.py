"""``EvaluationSpending``: keeps the runs of an evaluation within its budget, by reservation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kantan_agents.errors import EvaluationBudgetError
from kantan_agents.lab.evaluation.evaluators.evaluator import Evaluator
from kantan_agents.lab.evaluation.experiment.results import CaseResult
from kantan_agents.support.ledger import Ledger, LimitReachedError, Reservation


class EvaluationSpending:
    """Keeps the runs of an evaluation, and the judges of its evaluators, within its budget.

    Before a run begins, what the most expensive run of its variant has used so far is reserved for it, and
    what each of its evaluators has used at most. A variant or a judge of which nothing is known is asked once
    alone; with a budget, nothing else runs meanwhile.

    Args:
        limits: The budget, as ``tokens`` and ``cost``.
    """

    def __init__(self, limits: Mapping[str, float]) -> None:
        self._ledger = Ledger(limits)

    @property
    def tokens(self) -> int:
        """The tokens that were used."""
        return int(self._ledger.used.get("tokens", 0))

    @property
    def cost(self) -> float | None:
        """Their price; None if a model has no price."""
        return self._ledger.known("cost")

    @property
    def is_limited(self) -> bool:
        """Whether there is a budget."""
        return bool(self._ledger.limits)

    def learn(self, results: Iterable[tuple[str, CaseResult]]) -> None:
        """Learn what runs use from earlier results, each with the hash of its variant."""
        for variant, result in results:
            if result.status == "failed" and not result.tokens:
                continue  # it has failed before it asked a model
            self._ledger.learn(("run", variant), {"tokens": result.tokens, "cost": result.cost})

    def knows(self, variant: str | None, evaluators: Collection[Evaluator]) -> bool:
        """Return whether it is known what a run of a variant and its evaluators use.

        Args:
            variant: The hash of the variant; None if there is a result, which is only to be scored.
            evaluators: Those that are to be asked about it.
        """
        judges = [one for one in evaluators if one.source == "model"]
        return None not in self._largest(variant, judges)

    def reserve(self, variant: str | None, evaluators: Collection[Evaluator]) -> Reservation | None:
        """Reserve what a run and its evaluators may use; return None if that is more than what is left.

        Args:
            variant: As for ``knows``.
            evaluators: As for ``knows``.
        """
        estimate = self._estimate(variant, evaluators)
        asks_models = any(one.source == "model" for one in evaluators)
        if variant is None and not estimate["tokens"] and not asks_models:
            return Reservation()  # code costs nothing, also if nothing is left
        try:
            return self._ledger.reserve(estimate) if self._ledger.may_spend else None
        except LimitReachedError:
            return None

    def release(self, reserved: Reservation) -> None:
        """Give back what was reserved."""
        self._ledger.release(reserved)

    def spend_on_run(self, variant: str, result: CaseResult) -> None:
        """Count what a run has used."""
        self._ledger.spend({"tokens": result.tokens, "cost": result.cost})
        self.learn([(variant, result)])

    def spend_on_scores(self, evaluator: str, tokens: int, cost: float | None, *, has_scored: bool) -> None:
        """Count what an evaluator has used for one result.

        Args:
            evaluator: Its name.
            tokens: Input and output tokens.
            cost: Their price; None if it is not known.
            has_scored: Whether it has given a score: otherwise, without tokens, it may not have asked yet.
        """
        used = {"tokens": tokens, "cost": cost}
        self._ledger.spend(used)
        if tokens or has_scored:
            self._ledger.learn(("evaluator", evaluator), used)

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
        limits = self._ledger.limits
        shown = " and ".join(f"{name} {value:,}" for name, value in limits.items())
        if "cost" in limits and self.cost is None:
            reason = f"the limit is {shown}, and a model that was asked has no price; name it in the prices"
            return EvaluationBudgetError(reason=reason)
        next_one = self._estimate(variant, evaluators)["tokens"]
        what = "one run takes" if variant is not None else "the judges of one result take"
        kept = "are kept" if variant is not None else "are kept, some of them without all scores"
        return EvaluationBudgetError(
            reason=(
                f"the limit is {shown}; {self.tokens:,} tokens were used, and {what} up to {next_one:,.0f}. "
                f"{done} of {total} runs {kept}; start it again with a higher limit, and it goes on"
            )
        )

    def _largest(
        self, variant: str | None, evaluators: Collection[Evaluator]
    ) -> list[Mapping[str, float] | None]:
        kinds = [("evaluator", one.name) for one in evaluators]
        if variant is not None:
            kinds.append(("run", variant))
        return [self._ledger.largest(kind) for kind in kinds]

    def _estimate(self, variant: str | None, evaluators: Collection[Evaluator]) -> dict[str, float]:
        known = [one for one in self._largest(variant, evaluators) if one is not None]
        return {name: sum(one[name] for one in known) for name in ("tokens", "cost")}
