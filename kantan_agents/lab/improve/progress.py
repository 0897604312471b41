"""``ImproveProgress``: how far a search for a better prompt is."""

from __future__ import annotations

from typing import Literal

import attrs

Step = Literal["baseline", "search", "test"]


@attrs.frozen
class ImproveProgress:
    """How far it is; passed to ``progress`` whenever something is done.

    Attributes:
        step: ``"baseline"``, the old version runs on the validation cases; ``"search"``; ``"test"``, the
            sealed cases.
        round: Number of the current round of the search, from 1; 0 before.
        rounds: Number of all rounds.
        old_score: Mean validation score of the old version; None so far.
        best_score: The best mean validation score of a candidate that may win; None so far.
        tokens: Tokens used so far, those of an earlier start included.
        cost: Their price; None without prices for all models.
    """

    step: Step
    round: int
    rounds: int
    old_score: float | None
    best_score: float | None
    tokens: int
    cost: float | None
