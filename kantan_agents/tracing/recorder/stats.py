"""How a recorder stands."""

from __future__ import annotations

import attrs


@attrs.frozen
class RecorderStats:
    """What a recorder has done so far, in this process.

    Every span that ended is in exactly one of the four: written, queued, dropped or failed.

    Attributes:
        written: Spans in the database.
        queued: Spans that wait to be written.
        dropped: Spans lost because the queue was full (E63).
        failed: Spans that could not be recorded at all (E65).
        oldest_unwritten: Seconds the oldest of those that wait has waited; 0.0 if none does.
    """

    written: int
    queued: int
    dropped: int
    failed: int
    oldest_unwritten: float
