"""``RecorderStats``: the counters of a recorder."""

from __future__ import annotations

import attrs


@attrs.frozen
class RecorderStats:
    """The spans that a recorder has handled so far in this process.

    Each ended span is counted in exactly one of ``written``, ``queued``, ``dropped`` and ``failed``.

    Attributes:
        written: Spans in the database.
        queued: Spans that wait to be written.
        dropped: Spans lost because the queue was full (E63).
        failed: Spans that could not be recorded (E65).
        oldest_unwritten: Age of the oldest queued span in seconds; 0.0 if the queue is empty.
        replaced: How often the file was found moved, replaced, truncated or deleted while it was open.
    """

    written: int
    queued: int
    dropped: int
    failed: int
    oldest_unwritten: float
    replaced: int = 0
