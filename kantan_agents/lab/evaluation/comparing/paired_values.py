"""Values of a metric on the cases that two variants ran."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import attrs

from kantan_agents.lab.evaluation.comparing.missing_scores import Missing, MissingScores, worst_value
from kantan_agents.lab.evaluation.experiment.results import Better, CaseResult, VariantResults

CaseKey = tuple[str, str]
"""Id and hash of a case."""

FIGURES: Final[Mapping[str, Callable[[CaseResult], float | None]]] = {
    "failed": lambda one: float(one.status == "failed"),
    "latency": lambda one: one.seconds if one.status == "finished" else None,
    "tokens": lambda one: float(one.tokens) if one.status == "finished" else None,
    "cost": lambda one: one.cost if one.status == "finished" else None,
}
"""Metrics of every run. Lower is better."""


@attrs.frozen
class PairedValues:
    """The values of a metric on the cases that have one on both sides.

    ``a`` and ``b`` are means of repeats. ``conversations`` has the hash of a case outside of conversations,
    as equal cases are one.
    """

    metric: str
    better: Better
    cases: tuple[str, ...]
    a: tuple[float, ...]
    b: tuple[float, ...]
    conversations: tuple[str, ...]
    worst: float | None = None
    missing: tuple[int, int] = (0, 0)
    left_out: int = 0


def paired_values(
    metric: str,
    a: Mapping[CaseKey, list[CaseResult]],
    b: Mapping[CaseKey, list[CaseResult]],
    better: Better,
    missing: Missing = "worst",
) -> PairedValues:
    """Return the values of a metric on the cases that have one on both sides.

    Evaluators that failed on all finished runs of a variant are omitted: they give no evidence about the
    variants.
    """
    common = [key for key in a if key in b]
    sides = _sides(metric, [[side[key] for key in common] for side in (a, b)])
    worst = None
    if missing == "worst" and all(side.counts for side in sides):
        worst = worst_value((value for side in sides for one in side.cases for value in one.values), better)
    cases: list[tuple[str, float, float, str]] = []
    counted, left_out = [0, 0], 0
    for key, before, after in zip(common, sides[0].cases, sides[1].cases, strict=True):
        mean_a, mean_b = before.mean(worst), after.mean(worst)
        is_known = bool(before.values or after.values)
        if not is_known or mean_a is None or mean_b is None:
            left_out += is_known or bool(before.lacking or after.lacking)
            continue
        cases.append((key[0], mean_a, mean_b, a[key][0].unit))
        counted = [counted[0] + before.lacking, counted[1] + after.lacking]
    ids, values_a, values_b, conversations = zip(*cases, strict=True) if cases else ((), (), (), ())
    is_counted = worst is not None and any(counted)
    return PairedValues(
        metric,
        better,
        ids,
        values_a,
        values_b,
        conversations,
        worst if is_counted else None,
        (counted[0], counted[1]) if is_counted else (0, 0),
        left_out,
    )


@attrs.frozen
class _CaseValues:
    values: list[float]
    lacking: int

    def mean(self, worst: float | None) -> float | None:
        values = self.values if worst is None else [*self.values, *[worst] * self.lacking]
        return math.fsum(values) / len(values) if values else None


@attrs.frozen
class _Side:
    cases: list[_CaseValues]
    counts: bool


def _sides(metric: str, sides: Sequence[Sequence[Sequence[CaseResult]]]) -> list[_Side]:
    flat = [[one for runs in side for one in runs] for side in sides]
    givers = {one.evaluators[metric][0] for side in flat for one in side if metric in one.evaluators}
    figure = FIGURES.get(metric)
    if figure is None or any(metric in one.scores for side in flat for one in side):
        figure = None
    found = []
    for side, all_runs in zip(sides, flat, strict=True):
        scores = MissingScores(metric, givers, all_runs)
        cases = []
        for runs in side:
            given = [(one, _score(one, metric) if figure is None else figure(one)) for one in runs]
            known = [value for _, value in given if value is not None and math.isfinite(value)]
            without = [one for one, value in given if value is None or not math.isfinite(value)]
            cases.append(_CaseValues(known, len(without) if figure else sum(map(scores.lacks, without))))
        has_any = any(one.values for one in cases) or any(one.status == "failed" for one in all_runs)
        found.append(_Side(cases, counts=figure is None and has_any))
    return found


def runs_of_cases(results: VariantResults) -> dict[CaseKey, list[CaseResult]]:
    """Return the runs of each case."""
    found: dict[CaseKey, list[CaseResult]] = {}
    for one in results.results:
        found.setdefault((one.case_id, one.case_hash), []).append(one)
    return found


def better_of(metric: str, *variants: VariantResults) -> Better:
    """Return whether higher values are better."""
    for one in variants:
        for name in (metric, *(giver for giver, _ in givers_of(metric, one))):
            if name in one.better:
                return one.better[name]
    return "lower" if metric in FIGURES else "higher"


def givers_of(metric: str, results: VariantResults) -> set[tuple[str, str]]:
    """Return the name and version of each evaluator that gave scores of a metric."""
    return {one.evaluators[metric] for one in results.results if metric in one.evaluators}


def failed_scores(metric: str, results: VariantResults) -> int:
    """Return the number of failed scores of a metric."""
    scores = [one.scores[metric] for one in results.results if metric in one.scores]
    return sum(score.value is None for score in scores)


def _score(result: CaseResult, metric: str) -> float | None:
    score = result.scores.get(metric)
    return None if score is None else score.value
