"""``Progress``: how far an evaluation is."""

from __future__ import annotations

import attrs


@attrs.frozen
class Progress:
    """How far an evaluation is.

    Attributes:
        done: Runs that are finished and scored, those of earlier starts included.
        total: All runs.
        failed: Runs of this start that an error has ended.
        tokens: Input and output tokens of this start, those of judges included.
        cost: Their price; None without prices.
    """

    done: int
    total: int
    failed: int = 0
    tokens: int = 0
    cost: float | None = None
