"""Means of a judge's scores, corrected by a few labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from kantan_agents.errors import InvalidOptionError, NotComparableError, UnusableLabelsError
from kantan_agents.lab.evaluation.comparing.comparison import Verdict
from kantan_agents.lab.evaluation.comparing.paired_values import better_of
from kantan_agents.lab.evaluation.experiment.evaluation import Evaluation
from kantan_agents.lab.evaluation.experiment.results import VariantResults
from kantan_agents.lab.evaluation.labels.arguments import checked_metric
from kantan_agents.lab.evaluation.labels.corrected_values import CorrectedComparison, CorrectedScore
from kantan_agents.lab.evaluation.labels.judged_units import JudgedUnits, judged_units
from kantan_agents.lab.evaluation.labels.label import Label, RatedResult, given_by, labels_by_result
from kantan_agents.lab.evaluation.labels.measure import counted
from kantan_agents.lab.evaluation.labels.quality import check_judged
from kantan_agents.lab.evaluation.labels.stored_labels import labels_of
from kantan_agents.support.arguments import checked_number, shown
from kantan_agents.traces.store import TraceStore

FEWEST_LABELS: Final = 30
"""The coverage of the interval is measured from this number of labels."""


def corrected_compare(
    a: VariantResults,
    b: VariantResults,
    metric: str,
    *,
    people: str | None = None,
    by: str | Iterable[str] | None = None,
    level: float = 0.95,
) -> CorrectedComparison:
    """Compare two variants as reviewers would score them, from a judge's scores and labels of a few cases.

        corrected = corrected_compare(evaluation["v1"], evaluation["v2"], "helpful")
        print(corrected.text)

    The labels correct the judge's error about the difference. A judge that prefers one variant for its style
    does not change the result, and a useless judge gives an interval as wide as labels alone. Repeats of a
    case are averaged, and the cases of a conversation count as one observation.

    Args:
        a: The baseline, such as ``evaluation["v1"]``.
        b: The results that the verdict is about.
        metric: The metric of the judge.
        people: The metric of the labels, if it has another name.
        by: The name or names of the reviewers whose labels count; by default all, averaged.
        level: Confidence level.

    Raises:
        NotComparableError: E105, no case has scores of both.
        UnusableLabelsError: E107, there are too few labels, or some results were chosen, not sampled.
        EvaluationNotFoundError: E104, the evaluation was deleted meanwhile.
        InvalidOptionError: E75, no evaluator has given such a score, or an argument is invalid.
        TraceDatabaseError: E60, the database cannot be read.
    """
    check_judged(_checked("a", a, metric), a.results)
    check_judged(_checked("b", b, metric), b.results)
    named = checked_metric(metric if people is None else people, "people")
    confidence = _checked_level(level)
    units = judged_units((a, b), metric, _labels((a, b), named, by))
    if not units.cases:
        reason = f"no case has scores of {metric!r} with both; evaluate both on the same dataset"
        raise NotComparableError(a=a.variant, b=b.variant, reason=reason)
    _check_enough(units, named, "with both variants", a.evaluation)
    found = units.corrected(confidence)
    low, high = found.interval or (None, None)
    better = better_of(metric, a, b)
    verdict: Verdict = "cannot tell"
    if low is not None and high is not None and not low <= 0 <= high:
        verdict = "better" if (found.mean > 0) == (better == "higher") else "worse"
    return CorrectedComparison(
        metric=metric,
        people=named,
        a=a.variant,
        b=b.variant,
        better=better,
        difference=found.mean,
        low=low,
        high=high,
        judge_difference=units.judge_mean,
        judge_weight=found.judge_weight,
        labels=units.labelled,
        cases=units.cases,
        independent=units.independent,
        level=confidence,
        verdict=verdict,
    )


def corrected_score(
    results: VariantResults,
    metric: str,
    *,
    people: str | None = None,
    by: str | Iterable[str] | None = None,
    level: float = 0.95,
) -> CorrectedScore:
    """Return the mean score that reviewers would give a variant; see ``corrected_compare``.

    Args:
        results: The results, such as ``evaluation["v1"]``.
        metric: The metric of the judge.
        people: The metric of the labels, if it has another name.
        by: The name or names of the reviewers whose labels count; by default all, averaged.
        level: Confidence level.

    Raises:
        UnusableLabelsError: E107, there are too few labels, or some results were chosen, not sampled.
        EvaluationNotFoundError: E104, the evaluation was deleted meanwhile.
        InvalidOptionError: E75, no evaluator has given such a score, or an argument is invalid.
        TraceDatabaseError: E60, the database cannot be read.
    """
    check_judged(_checked("results", results, metric), results.results)
    named = checked_metric(metric if people is None else people, "people")
    confidence = _checked_level(level)
    units = judged_units((results,), metric, _labels((results,), named, by))
    _check_enough(units, named, f"with {results.variant!r}", results.evaluation)
    found = units.corrected(confidence)
    low, high = found.interval or (None, None)
    return CorrectedScore(
        metric=metric,
        people=named,
        variant=results.variant,
        mean=found.mean,
        low=low,
        high=high,
        judge_mean=units.judge_mean,
        judge_weight=found.judge_weight,
        labels=units.labelled,
        cases=units.cases,
        independent=units.independent,
        level=confidence,
    )


def _checked(option: str, results: Any, metric: str) -> str:
    if not isinstance(results, VariantResults) or results.path is None:
        reason = f'must be stored results of a variant, such as evaluation["v1"], not {shown(results)}'
        raise InvalidOptionError(option=option, reason=reason)
    return checked_metric(metric)


def _checked_level(level: float) -> float:
    if not 0 < checked_number("level", level, above_zero=True) < 1:
        raise InvalidOptionError(option="level", reason=f"must be between 0 and 1, not {level}")
    return float(level)


def _labels(
    sides: Sequence[VariantResults], metric: str, by: str | Iterable[str] | None
) -> dict[RatedResult, list[Label]]:
    found: list[Label] = []
    for side in sides:
        if side.path is not None:
            evaluation = Evaluation.load(TraceStore(side.path), side.evaluation)
            found += (one for one in labels_of(evaluation, metric) if one.variant == side.variant)
    found = given_by(found, by)
    picked = Counter(one.by for one in found if one.probability is None)
    if picked:
        raise UnusableLabelsError(metric=metric, reason=_picked(picked, len(found)))
    return labels_by_result(found)


def _picked(picked: Counter[str], labels: int) -> str:
    return (
        f"{picked.total():,} of {counted(labels, 'label')} ({', '.join(sorted(picked))}) "
        f"{'was' if picked.total() == 1 else 'were'} picked by hand. What somebody picks is unlike the other "
        "results, so nothing follows for those. Label a random sample with LabelQueue, and remove these "
        "labels with remove_label or name other people with by"
    )


def _check_enough(units: JudgedUnits, metric: str, what: str, evaluation: str) -> None:
    if units.labelled_units >= FEWEST_LABELS:
        return
    kind = "case" if units.independent == units.cases else "conversation"
    have = "has" if units.labelled_units == 1 else "have"
    reason = f"{counted(units.labelled_units, kind)} {have} a label {what}, and it takes {FEWEST_LABELS}"
    if units.independent < FEWEST_LABELS:
        reason += f"; there are only {counted(units.independent, kind)}, so evaluate more"
    else:
        reason += f"; label {FEWEST_LABELS - units.labelled_units} more of {evaluation!r}"
    raise UnusableLabelsError(metric=metric, reason=reason)
