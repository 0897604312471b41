"""``Label``: what a person says about one result of an evaluation."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import attrs


@attrs.frozen
class Label:
    """A person's score of a result.

    Attributes:
        case_id: Id of the case.
        case_hash: What the case contained.
        variant: Name of the variant.
        repeat: Number of the repetition, from 0.
        metric: What was judged.
        by: Who gave it.
        value: The score; from 0 to 1 if it was given in a queue.
        label: A word or a grade for it.
        comment: The reason.
        probability: With which probability the result was drawn for labelling; None if somebody picked it.
        created_at: When it was given, in UTC.
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
