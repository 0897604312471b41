"""Reads the labels of an evaluation; adds and removes single labels."""

from __future__ import annotations

from collections.abc import Sequence

from kantan_agents.errors import EvaluationNotFoundError
from kantan_agents.lab.evaluation.experiment.evaluation import Evaluation
from kantan_agents.lab.evaluation.labels.arguments import check_unicode, checked_metric, checked_name
from kantan_agents.lab.evaluation.labels.label import Label
from kantan_agents.lab.evaluation.labels.rows import (
    LabelRow,
    ResultRow,
    delete_label,
    read_finished,
    read_labels,
    write_label,
)
from kantan_agents.lab.evaluation.labels.scale import LabelScale
from kantan_agents.support.arguments import checked_int


def labels_of(evaluation: Evaluation, metric: str | None = None) -> tuple[Label, ...]:
    """Return the labels of an evaluation, in the order of its results, metrics and reviewers.

    Args:
        evaluation: The evaluation.
        metric: The judged metric; None for all metrics.

    Raises:
        TraceDatabaseError: E60, the database cannot be read.
    """
    body = evaluation.row.body
    places = {tuple(case): place for place, case in enumerate(body["cases"])}
    variants = {name: place for place, name in enumerate(evaluation.variants)}
    found = [
        one
        for one in read_labels(evaluation.path, evaluation.row, metric)
        if (one.case_id, one.case_hash) in places and one.repeat < evaluation.repeats
    ]
    found.sort(
        key=lambda one: (
            places[one.case_id, one.case_hash],
            one.repeat,
            variants[one.variant],
            one.metric,
            one.by,
        )
    )
    return tuple(found)


def add_label(
    evaluation: Evaluation,
    case_id: str,
    variant: str,
    repeat: int,
    metric: str,
    value: float,
    *,
    by: str,
    label: str | None = None,
    comment: str | None = None,
    scale: LabelScale | str | Sequence[float] = (0.0, 1.0),
) -> None:
    """Store a label of a result of your choice, in place of an earlier one of the same reviewer.

    Chosen results do not represent the others. Such a label therefore has no probability, and
    ``corrected_compare`` rejects it; it accepts labels from ``LabelQueue``.

    Args:
        evaluation: The evaluation.
        case_id: Id of the case.
        variant: Name of the variant.
        repeat: Number of the repetition, from 0.
        metric: The judged metric.
        value: True, False or a number of the scale.
        by: Name of the reviewer.
        label: A word for it; by default the grade, or yes or no.
        comment: The reason.
        scale: As for ``LabelQueue.of``.

    Raises:
        EvaluationNotFoundError: E104, the variant or a finished result is missing.
        InvalidOptionError: E75, an argument is invalid.
        TraceDatabaseError: E60, the database cannot be changed.
    """
    metric, by = checked_metric(metric), checked_name("by", by)
    stored, word = LabelScale.of(scale).stored(value)
    check_unicode("label", label)
    check_unicode("comment", comment)
    result = _result(evaluation, case_id, variant, repeat)
    row = LabelRow(metric, by, stored, label or word, comment or None, None)
    is_stored, _ = write_label(evaluation.path, result, row)
    if not is_stored:
        raise _no_result(evaluation, case_id, variant, repeat)


def remove_label(
    evaluation: Evaluation, case_id: str, variant: str, repeat: int, metric: str, *, by: str
) -> bool:
    """Delete a label.

    Args:
        evaluation: The evaluation.
        case_id: Id of the case.
        variant: Name of the variant.
        repeat: Number of the repetition, from 0.
        metric: The judged metric.
        by: Name of the reviewer.

    Raises:
        EvaluationNotFoundError: E104, the variant or a finished result is missing.
        InvalidOptionError: E75, an argument is invalid.
        TraceDatabaseError: E60, the database cannot be changed.

    Returns:
        Whether it existed.
    """
    metric, by = checked_metric(metric), checked_name("by", by)
    return delete_label(evaluation.path, _result(evaluation, case_id, variant, repeat), metric, by)


def _result(evaluation: Evaluation, case_id: str, variant: str, repeat: int) -> ResultRow:
    wanted = (case_id, evaluation.hash_of(variant), checked_int("repeat", repeat, 0))
    for row in read_finished(evaluation.path, evaluation.row):
        found_case, _, variant_hash, number = row.key
        if (found_case, variant_hash, number) == wanted:
            return row
    raise _no_result(evaluation, case_id, variant, repeat)


def _no_result(evaluation: Evaluation, case_id: str, variant: str, repeat: int) -> EvaluationNotFoundError:
    reason = f"no finished run of the case {case_id!r} with {variant!r}, repetition {repeat}"
    return EvaluationNotFoundError(name=evaluation.name, reason=reason)
