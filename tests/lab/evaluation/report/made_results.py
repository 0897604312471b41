"""Results of two variants, made by hand, for the tests of the report."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from kantan_agents.lab import Case, CaseResult, Score, VariantResults


def cases_of(count: int, text: str = "Where is order {}?") -> list[Case]:
    """Return cases with ids ``c0``, ``c1``, ..."""
    return [Case(text.format(number), id=f"c{number}", expected="On its way.") for number in range(count)]


def result(case: Case, variant: str, scores: Mapping[str, Any], **more: Any) -> CaseResult:
    """Return a finished run with these scores; numbers become scores."""
    given = {
        "output": f"{variant} says {case.id}",
        "status": "finished",
        "error": None,
        "trace_id": f"trace_{variant}_{case.id}",
        "repeat": 0,
        "seconds": 1.0,
        "cost": None,
        **more,
    }
    named = {key: one if isinstance(one, Score) else Score(float(one)) for key, one in scores.items()}
    return CaseResult(
        case_id=case.id,
        case_hash=case.hash,
        conversation=case.conversation,
        variant=variant,
        input_tokens=10,
        output_tokens=5,
        model_calls=1,
        scores=named,
        **given,
    )


def variant(name: str, results: list[CaseResult], **better: Any) -> VariantResults:
    """Return the results of a variant."""
    return VariantResults("orders", name, tuple(results), better)


def two_variants(count: int = 20) -> tuple[list[Case], VariantResults, VariantResults]:
    """Return cases with the results of two variants: one metric is yes or no, one from 0 to 1, one larger."""
    drawn = random.Random(1)
    cases = cases_of(count)

    def made(name: str, more: float) -> VariantResults:
        return variant(
            name,
            [
                result(
                    case,
                    name,
                    {
                        "polite": drawn.random() < 0.4 + more,
                        "helpful": Score(round(drawn.random() / 2 + more / 2, 2), comment="It is so."),
                        "words": drawn.randint(20, 90),
                    },
                    seconds=1 + drawn.random(),
                )
                for case in cases
            ],
        )

    return cases, made("v1", 0.0), made("v2", 0.5)
