"""``Candidate``: one proposed version of the prompt, and its outcome."""

from __future__ import annotations

from typing import Any, Final, Literal

import attrs

CandidateStatus = Literal["old", "refused", "rejected", "not eligible", "behind", "tested", "winner"]
STATUSES: Final[tuple[CandidateStatus, ...]] = (
    "old",
    "refused",
    "rejected",
    "not eligible",
    "behind",
    "tested",
    "winner",
)
"""The old version; then from the earliest to the latest end of a candidate."""


@attrs.frozen
class Candidate:
    """One version of the prompt, with its position in the lineage.

    Attributes:
        number: Its number in the order of the proposals; the old version is 0.
        parent: Number of the version that it is based on; None for the old version.
        text: The prompt.
        changes: The reflection model's description of its changes.
        status: ``"old"``, the version to improve; ``"refused"``, it was not run, see ``reason``;
            ``"rejected"``, it scored no better than its parent on the cases that it is based on; ``"not
            eligible"``, it broke a limit, see ``reason``; ``"behind"``, another candidate is better;
            ``"tested"``, it was tested on the held-out cases and is not shown to be better; ``"winner"``.
        reason: Why it is not the new version; None for the old version and the winner.
        sample: Its mean score on the cases that it is based on; None if it was not run.
        parent_sample: The mean score of its parent on the same cases.
        score: Its mean score on the validation cases; None if it was not validated.
        tokens: Mean tokens of its runs on the validation cases.
    """

    number: int
    parent: int | None
    text: str
    changes: str = ""
    status: CandidateStatus = "rejected"
    reason: str | None = None
    sample: float | None = None
    parent_sample: float | None = None
    score: float | None = None
    tokens: float | None = None

    @property
    def remark(self) -> str:
        """The remark in tables: why it is not the new version, or else its changes."""
        is_shown_by_numbers = self.status in ("rejected", "behind")
        return (not is_shown_by_numbers and self.reason) or self.changes

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return attrs.asdict(self)
