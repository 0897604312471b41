"""A judge's scores and differences, corrected by human labels."""

from __future__ import annotations

from typing import Any

import attrs

from kantan_agents.lab.evaluation.comparing.comparison import Verdict
from kantan_agents.lab.evaluation.experiment.results import Better
from kantan_agents.lab.evaluation.labels.measure import bounds


@attrs.frozen
class CorrectedComparison:
    """The difference between two variants as reviewers would score all cases.

    Attributes:
        metric: The metric of the judge.
        people: The metric of the labels.
        a: Name of the baseline.
        b: Name of the variant that the verdict is about.
        better: Whether a higher or a lower value is better.
        difference: ``b`` minus ``a`` on the scale of the labels.
        low: Lower bound of the interval, which stays inside the scale; None if unknown.
        high: Upper bound.
        judge_difference: The judge's uncorrected difference.
        judge_weight: The weight of the judge's scores; 0 if they do not make the labels more precise, and
            then only the labels count.
        labels: Number of cases with labels for both variants.
        cases: Number of cases with the judge's scores for both.
        independent: Number of independent cases; the cases of a conversation count as one.
        level: Confidence level.
        verdict: Whether ``b`` is better.
    """

    metric: str
    people: str
    a: str
    b: str
    better: Better
    difference: float
    low: float | None
    high: float | None
    judge_difference: float
    judge_weight: float
    labels: int
    cases: int
    independent: int
    level: float
    verdict: Verdict

    @property
    def text(self) -> str:
        """The verdict in a few words."""
        # A verdict is about a size; "cannot tell" is about a difference with its sign.
        turn = -1 if self.verdict != "cannot tell" and self.difference < 0 else 1
        low, high = (self.low, self.high) if turn == 1 else _negated(self.low, self.high)
        figures = _figures(self.difference * turn, low, high, self.labels, self.cases)
        alone = _judge(self.judge_difference * turn, self.judge_weight)
        if self.verdict == "cannot tell":
            about = f"{self.people}, as people judge it: cannot tell"
            return f"{about}, the difference is {figures}; {alone}"
        return f"{self.b} {self.verdict} on {self.people}, as people judge it, by {figures}; {alone}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data, with ``text``."""
        return {**attrs.asdict(self), "text": self.text}


@attrs.frozen
class CorrectedScore:
    """The mean score of a variant as reviewers would score all cases.

    Attributes:
        metric: The metric of the judge.
        people: The metric of the labels.
        variant: Name of the variant.
        mean: The mean on the scale of the labels.
        low: Lower bound of the interval, which stays inside the scale; None if unknown.
        high: Upper bound.
        judge_mean: The judge's uncorrected mean.
        judge_weight: The weight of the judge's scores; 0 if they do not make the labels more precise, and
            then only the labels count.
        labels: Number of cases with a label.
        cases: Number of cases with the judge's score.
        independent: Number of independent cases; the cases of a conversation count as one.
        level: Confidence level.
    """

    metric: str
    people: str
    variant: str
    mean: float
    low: float | None
    high: float | None
    judge_mean: float
    judge_weight: float
    labels: int
    cases: int
    independent: int
    level: float

    @property
    def text(self) -> str:
        """The mean in a few words."""
        figures = _figures(self.mean, self.low, self.high, self.labels, self.cases)
        alone = _judge(self.judge_mean, self.judge_weight)
        return f"{self.variant} on {self.people}, as people judge it: {figures}; {alone}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data, with ``text``."""
        return {**attrs.asdict(self), "text": self.text}


def _negated(low: float | None, high: float | None) -> tuple[float | None, float | None]:
    return (None, None) if low is None or high is None else (-high, -low)


def _judge(value: float, weight: float) -> str:
    said = f"the judge alone says {value:.2g}"
    return said if weight else f"{said} and does not make this more precise, so only the labels count"


def _figures(value: float, low: float | None, high: float | None, labels: int, cases: int) -> str:
    counts = (f"{labels:,} labels", f"{cases:,} cases")
    return f"{value:.2g} ({', '.join([*bounds(low, high), *counts])})"
