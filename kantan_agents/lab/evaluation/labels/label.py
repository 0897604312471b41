"""Labels of results, and which count."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from statistics import fmean
from typing import Any

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.labels.arguments import checked_name
from kantan_agents.support.arguments import checked_list

RatedResult = tuple[str, str, str, int]
"""Id and hash of a case, name of a variant, number of the repetition."""


@attrs.frozen
class Label:
    """A reviewer's score of a result.

    Attributes:
        case_id: Id of the case.
        case_hash: Hash of the case.
        variant: Name of the variant.
        repeat: Number of the repetition, from 0.
        metric: The judged metric.
        by: Name of the reviewer.
        value: The score; from 0 to 1 if it was given in a queue.
        label: A word or a grade for it.
        comment: The reason.
        probability: The probability with which the result was sampled for labeling; None if it was chosen.
        created_at: Time of the label, in UTC.
    """

    case_id: str
    case_hash: str
    variant: str
    repeat: int
    metric: str
    by: str
    value: float
    label: str | None
    comment: str | None
    probability: float | None
    created_at: datetime

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {**attrs.asdict(self), "created_at": self.created_at.isoformat()}


def labels_by_result(labels: Iterable[Label]) -> dict[RatedResult, list[Label]]:
    """Return the labels by result."""
    found: dict[RatedResult, list[Label]] = {}
    for one in labels:
        found.setdefault((one.case_id, one.case_hash, one.variant, one.repeat), []).append(one)
    return found


def given_by(labels: Iterable[Label], by: str | Iterable[str] | None) -> list[Label]:
    """Return the labels of one or several reviewers; of all for None."""
    if by is None:
        return list(labels)
    names = [checked_name("by", one) for one in ([by] if isinstance(by, str) else checked_list("by", by))]
    if not names:
        raise InvalidOptionError(option="by", reason="name at least one person")
    return [one for one in labels if one.by in names]


def mean_value(labels: Iterable[Label]) -> float:
    """Return the mean of several reviewers' values."""
    return fmean(one.value for one in labels)
