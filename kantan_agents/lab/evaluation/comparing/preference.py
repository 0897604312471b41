"""A pairwise judge of the outputs of two variants."""

from __future__ import annotations

from typing import Final

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.comparing.paired_values import CaseKey, runs_of_cases
from kantan_agents.lab.evaluation.evaluators import Evaluator, PairwiseJudge
from kantan_agents.lab.evaluation.experiment.results import CaseResult, VariantResults
from kantan_agents.lab.evaluation.finished_case import FinishedCase
from kantan_agents.lab.evaluation.scores import Score
from kantan_agents.support.arguments import shown
from kantan_agents.traces.capture.canonical import content_hash

_VALUES: Final = {"b": 1.0, "tie": 0.5, "a": 0.0}


def preferred(judge: PairwiseJudge, *, over: VariantResults, name: str = "preferred") -> Evaluator:
    """Return an evaluator: is the output better than the output of another variant for the same case?

        baseline = evaluate({"v1": v1}, dataset, agent=agent)["v1"]
        judged = preferred(pairwise(), over=baseline)
        evaluation = evaluate({"v1": v1, "v2": v2}, dataset, judged, agent=agent)
        print(compare(evaluation["v1"], evaluation["v2"], metrics="preferred").text)

    The judge sees both outputs, in both orders. The score is 1 if it prefers this output, 0 if it prefers the
    other one, and 0.5 for a tie: it cannot decide, or its two answers disagree. Equal outputs are a tie
    without a call. The other variant itself scores 0.5, so ``compare`` tests whether the judge prefers the
    new one more often. ``judge_quality`` measures position bias from the stored scores.

    Args:
        judge: From ``pairwise``.
        over: The results of the other variant. A case without an output there gets no score.
        name: Name of the metric.

    Raises:
        InvalidOptionError: E75, an argument is invalid.
    """
    if not isinstance(judge, PairwiseJudge):
        raise InvalidOptionError(option="judge", reason=f"must be from pairwise(...), not {shown(judge)}")
    if not isinstance(over, VariantResults):
        reason = f'must be the results of a variant, such as evaluation["v1"], not {shown(over)}'
        raise InvalidOptionError(option="over", reason=reason)
    others = runs_of_cases(over)

    async def is_preferred(finished: FinishedCase) -> Score | None:
        other = _other(others, finished)
        if other is None:
            return None
        verdict = await judge.compare(other.finished(finished.case), finished)
        if verdict.winner is None:
            return Score(None, source="model", error=verdict.error)
        comment = " / ".join(verdict.comments) or None
        return Score(_VALUES[verdict.winner], verdict.label, comment, "model")

    outputs = {"|".join(key): [one.output for one in runs] for key, runs in others.items()}
    version = content_hash([judge.version, over.variant, outputs])
    return Evaluator(name, version, is_preferred, source="model")


def _other(others: dict[CaseKey, list[CaseResult]], finished: FinishedCase) -> CaseResult | None:
    """Prefer the same repetition."""
    runs = [one for one in others.get((finished.case.id, finished.case.hash), []) if one.status == "finished"]
    same = [one for one in runs if one.repeat == finished.repeat]
    return next(iter([*same, *runs]), None)
