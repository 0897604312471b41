"""``PairedValues``: the values of a metric on the cases that two variants were run on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import attrs

from kantan_agents.lab.evaluation.experiment.results import Better, CaseResult, VariantResults

CaseKey = tuple[str, str]
"""Id and hash of a case."""

FIGURES: Final[Mapping[str, Callable[[CaseResult], float | None]]] = {
    "failed": lambda one: float(one.status == "failed"),
    "latency": lambda one: one.seconds if one.status == "finished" else None,
    "tokens": lambda one: float(one.tokens) if one.status == "finished" else None,
    "cost": lambda one: one.cost if one.status == "finished" else None,
}
"""What every run has besides its scores: whether it has failed, its seconds, its tokens, its cost. Lower is
better."""


@attrs.frozen
class PairedValues:
    """The values of a metric on the cases that have one on both sides.

    Attributes:
        metric: The metric.
        better: Whether a higher or a lower value is better.
        cases: The ids of the cases.
        a: For each case its value, the mean of its repeats.
        b: The same for the other variant.
        conversations: For each case its conversation; otherwise what it contained, as equal cases are one.
    """

    metric: str
    better: Better
    cases: tuple[str, ...]
    a: tuple[float, ...]
    b: tuple[float, ...]
    conversations: tuple[str, ...]


def paired_values(
    metric: str, a: Mapping[CaseKey, list[CaseResult]], b: Mapping[CaseKey, list[CaseResult]], better: Better
) -> PairedValues:
    """Return the values of a metric on the cases that have one on both sides.

    Args:
        metric: A metric of evaluators, or a key of ``FIGURES``.
        a: The runs of each case.
        b: The same for the other variant.
        better: Whether a higher or a lower value is better.
    """
    value = FIGURES.get(metric) if not _has_scores(metric, a, b) else None
    value = value or (lambda one: _score(one, metric))
    found: list[tuple[str, float, float, str]] = []
    for key, runs in a.items():
        before, after = _mean(map(value, runs)), _mean(map(value, b.get(key, [])))
        if before is not None and after is not None:
            found.append((key[0], before, after, runs[0].unit))
    ids, values_a, values_b, conversations = zip(*found, strict=True) if found else ((), (), (), ())
    return PairedValues(metric, better, ids, values_a, values_b, conversations)


def runs_of_cases(results: VariantResults) -> dict[CaseKey, list[CaseResult]]:
    """Return the runs of each case."""
    found: dict[CaseKey, list[CaseResult]] = {}
    for one in results.results:
        found.setdefault((one.case_id, one.case_hash), []).append(one)
    return found


def better_of(metric: str, *variants: VariantResults) -> Better:
    """Return whether a higher or a lower value of a metric is better."""
    for one in variants:
        for name in (metric, *(giver for giver, _ in givers_of(metric, one))):
            if name in one.better:
                return one.better[name]
    return "lower" if metric in FIGURES else "higher"


def givers_of(metric: str, results: VariantResults) -> set[tuple[str, str]]:
    """Return the evaluators that have given scores of a metric, by name and version."""
    return {one.evaluators[metric] for one in results.results if metric in one.evaluators}


def failed_scores(metric: str, results: VariantResults) -> int:
    """Return how many scores of a metric have failed."""
    scores = [one.scores[metric] for one in results.results if metric in one.scores]
    return sum(score.value is None for score in scores)


def _has_scores(metric: str, *sides: Mapping[CaseKey, list[CaseResult]]) -> bool:
    return any(metric in one.scores for side in sides for runs in side.values() for one in runs)


def _score(result: CaseResult, metric: str) -> float | None:
    score = result.scores.get(metric)
    return None if score is None else score.value


def _mean(values: Iterable[float | None]) -> float | None:
    listed = [value for value in values if value is not None and math.isfinite(value)]
    return math.fsum(listed) / len(listed) if listed else None
