"""Results of variants with given scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kantan_agents.lab import CaseResult, Score, VariantResults
from kantan_agents.lab.evaluation.evaluators.evaluator import Better


def result(
    case: str,
    value: float | None,
    *,
    variant: str = "v1",
    metric: str = "help",
    repeat: int = 0,
    conversation: str | None = None,
    content: str = "content",
    failed: bool = False,
    **more: Any,
) -> CaseResult:
    scores = {} if failed else {metric: Score(value, error=None if value is not None else "ValueError: no")}
    figures: dict[str, Any] = {"seconds": 1.0, "input_tokens": 10, "output_tokens": 5, "cost": None, **more}
    return CaseResult(
        case_id=case,
        case_hash=f"{content} of {case}",
        conversation=conversation,
        variant=variant,
        repeat=repeat,
        status="failed" if failed else "finished",
        output=None if failed else "answer",
        error="ValueError: broken" if failed else None,
        trace_id=None,
        model_calls=1,
        scores=scores,
        **figures,
    )


def results(
    values: Sequence[float | None], variant: str = "v1", better: Better = "higher", **more: Any
) -> VariantResults:
    """Return results of cases "0", "1", ... with these scores of the metric "help"."""
    made = tuple(result(str(case), value, variant=variant, **more) for case, value in enumerate(values))
    return variant_of(made, variant, better)


def variant_of(
    made: Sequence[CaseResult], variant: str = "v1", better: Better = "higher", evaluation: str = "e"
) -> VariantResults:
    directions: Mapping[str, Better] = {"help": better}
    return VariantResults(evaluation, variant, tuple(made), directions)
