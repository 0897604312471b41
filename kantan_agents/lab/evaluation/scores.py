"""The score of an evaluator or a person for one run of a case."""

from __future__ import annotations

from typing import Literal

import attrs

Source = Literal["code", "model", "person"]


@attrs.frozen
class Score:
    """One score of one run.

    Attributes:
        value: The score; for yes or no, 1.0 or 0.0. None only if it has failed.
        label: A word for it, such as ``"polite"``.
        comment: The reason.
        source: Its origin: code, a model or a person.
        error: The error that the evaluator raised. Means omit a failed score; ``compare`` counts it as the
            worst one.
    """

    value: float | None
    label: str | None = None
    comment: str | None = None
    source: Source = "code"
    error: str | None = None
