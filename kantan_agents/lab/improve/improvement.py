"""``Improvement``: the result of a search for a better prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import attrs

from kantan_agents.core.prompt import Prompt
from kantan_agents.lab.evaluation.comparing import Comparison
from kantan_agents.lab.improve.candidate import Candidate
from kantan_agents.lab.improve.openings import Opening
from kantan_agents.lab.replay.cohort import Skipped

Step = Literal["baseline", "search", "test"]


@attrs.frozen
class ImproveProgress:
    """The progress of a search; passed to ``progress`` after each step.

    Attributes:
        step: ``"baseline"``, the old version runs on the validation cases; ``"search"``; ``"test"``, the
            held-out cases.
        round: Number of the current round of the search, from 1; 0 before.
        rounds: Number of all rounds.
        old_score: Mean validation score of the old version; None so far.
        best_score: The best mean validation score of a candidate that may win; None so far.
        tokens: Tokens used so far, including earlier starts.
        cost: Their price; None without prices for all models.
    """

    step: Step
    round: int
    rounds: int
    old_score: float | None
    best_score: float | None
    tokens: int
    cost: float | None


@attrs.frozen
class Improvement:
    """The result of a search for a better prompt. Nothing goes live by itself.

    Attributes:
        agent: Name of the agent.
        old: The old version.
        new: The new version; None if no version is shown to be better.
        reason: Why there is no new version; None if there is one.
        diff: The difference between the old version and the best candidate, as a unified diff; empty without
            one.
        comparison: Both on the held-out cases; None if these were not opened.
        opening: The number of this opening of the held-out cases, and its error rate; None if they were not
            opened.
        candidates: The lineage: every proposed version, the old one first.
        cases: Number of recorded runs for training, validation and the held-out test.
        skipped: The omitted traces, each with the reason.
        rounds: Number of rounds.
        is_out_of_budget: Whether the search stopped because the budget did not suffice for the next step.
        tokens: Tokens used, including earlier starts and the judge.
        cost: Their price; None without prices for all models.
        folder: The working folder.
        files: The files in it, by kind: ``"prompt"``, ``"diff"``, ``"lineage"``, ``"summary"``.
        rollout_code: Two lines of Python that deploy the new version for no one yet; empty without one.
        rollout_command: The command that gives it to the first users; empty without a new version.
    """

    agent: str
    old: Prompt
    new: Prompt | None
    reason: str | None
    diff: str
    comparison: Comparison | None
    opening: Opening | None
    candidates: Sequence[Candidate]
    cases: Mapping[str, int]
    skipped: Sequence[Skipped]
    rounds: int
    is_out_of_budget: bool
    tokens: int
    cost: float | None
    folder: Path
    files: Mapping[str, Path] = attrs.field(factory=dict)
    rollout_code: Sequence[str] = ()
    rollout_command: str = ""

    @property
    def winner(self) -> Candidate | None:
        """The candidate that became the new version."""
        return next((one for one in self.candidates if one.status == "winner"), None)

    @property
    def text(self) -> str:
        """The result on one line: the verdict, or why there is no new version."""
        if self.new is None or self.comparison is None:
            return f"no new version: {self.reason}"
        # Without its note on looks: all openings together share the error rate.
        return "; ".join(self.comparison.lines)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data."""
        opening = self.opening
        return {
            "agent": self.agent,
            "old": _prompt(self.old),
            "new": None if self.new is None else _prompt(self.new),
            "reason": self.reason,
            "diff": self.diff,
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
            "opening": None if opening is None else attrs.asdict(opening),
            "candidates": [one.to_dict() for one in self.candidates],
            "cases": dict(self.cases),
            "skipped": [attrs.asdict(one) for one in self.skipped],
            "rounds": self.rounds,
            "is_out_of_budget": self.is_out_of_budget,
            "tokens": self.tokens,
            "cost": self.cost,
            "folder": str(self.folder),
            "files": {name: str(path) for name, path in self.files.items()},
            "rollout_code": list(self.rollout_code),
            "rollout_command": self.rollout_command,
        }


def _prompt(prompt: Prompt) -> dict[str, str]:
    return {"name": prompt.name, "version": prompt.version, "text": prompt.text}
