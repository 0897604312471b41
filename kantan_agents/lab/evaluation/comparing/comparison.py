"""``Comparison``: what the results of two variants say, metric by metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.comparing.number_texts import number_text
from kantan_agents.lab.evaluation.comparing.paired_values import FIGURES
from kantan_agents.lab.evaluation.experiment.results import Better
from kantan_agents.support.nearest import nearest

Verdict = Literal["better", "worse", "cannot tell"]


@attrs.frozen
class MetricComparison:
    """Two variants compared by one metric.

    Attributes:
        metric: The metric.
        a: Name of the one variant.
        b: Name of the other variant, which the verdict is about.
        better: Whether a higher or a lower value is better.
        is_binary: Whether the values are yes or no.
        cases: Number of cases that have a value on both sides.
        independent: Number of these that are independent: cases, or conversations of several cases.
        mean_a: Mean over these cases, repeats averaged first; None without cases.
        mean_b: The same for ``b``.
        difference: ``mean_b`` minus ``mean_a``.
        low: Lower bound of the interval of the difference; None if ``no_interval`` says why not.
        high: Upper bound.
        p: The p of the hypothesis that they do not differ.
        p_adjusted: The same, adjusted for the number of metrics that are compared (Holm).
        detectable: The smallest true difference that these cases would have shown among as many metrics, with
            a probability of 80 %.
        wanted: The difference that ``more_cases`` is about.
        more_cases: How many more cases it takes to show a difference of ``wanted`` among as many metrics;
            None if it cannot be known.
        wins: Ids of the cases in which ``b`` is better.
        ties: Ids of the cases in which both are equal.
        losses: Ids of the cases in which ``b`` is worse.
        verdict: Whether ``b`` is better.
        reason: Why nobody can tell, if the number of cases is not the reason.
        no_interval: Why there is no interval; None if there is one.
        fewest: How many independent cases must differ, at least, for any verdict among as many metrics; 0 if
            no number of cases gives one.
    """

    metric: str
    a: str
    b: str
    better: Better
    is_binary: bool
    cases: int
    independent: int
    mean_a: float | None
    mean_b: float | None
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    p_adjusted: float | None
    detectable: float | None
    wanted: float | None
    more_cases: int | None
    wins: tuple[str, ...] = attrs.field(repr=False)
    ties: tuple[str, ...] = attrs.field(repr=False)
    losses: tuple[str, ...] = attrs.field(repr=False)
    verdict: Verdict
    reason: str | None = None
    no_interval: str | None = None
    fewest: int = 0

    @property
    def is_notable(self) -> bool:
        """Whether it is worth a line: a figure such as the number of failures only if it differs anywhere."""
        return bool(self.wins or self.losses) or self.metric not in FIGURES

    @property
    def text(self) -> str:
        """The verdict in a few words."""
        if self.verdict != "cannot tell":
            return f"{self.b} {self.verdict} on {self.metric} by {_figures(self, turned=True)}"
        if self.reason is not None:
            no_case_differs = self.independent > 1 and not self.difference
            known = f" ({', '.join(_certainty(self))})" if no_case_differs else ""
            return f"{self.metric}: cannot tell, {self.reason}{known}{_takes(self)}"
        return f"{self.metric}: cannot tell, the difference is {_figures(self, turned=False)}{_takes(self)}"


@attrs.frozen
class Comparison:
    """Two variants compared by all metrics.

    Attributes:
        a: Name of the one variant.
        b: Name of the other variant, which the verdicts are about.
        metrics: One comparison for each metric.
        cases: Number of cases that both variants were run on.
        unpaired: Ids of the cases that only one of them was run on; they are left out.
        failed: Number of failed runs of each variant.
        failed_scores: For each metric with failed scores, their number for each variant; these cases are left
            out.
        level: The confidence level.
    """

    a: str
    b: str
    metrics: tuple[MetricComparison, ...]
    cases: int
    unpaired: tuple[str, ...]
    failed: Mapping[str, int]
    failed_scores: Mapping[str, Mapping[str, int]]
    level: float

    @property
    def lines(self) -> tuple[str, ...]:
        """The verdicts, one for each metric, and the number of failed runs."""
        lines = [one.text for one in self.metrics if one.is_notable]
        for name, count in self.failed.items():
            if count:
                lines.append(f"{count} failed {'run' if count == 1 else 'runs'} of {name} without scores")
        for metric, counts in self.failed_scores.items():
            for name, count in counts.items():
                if count:
                    lines.append(
                        f"{count} failed {'score' if count == 1 else 'scores'} of {name} on {metric}"
                    )
        return tuple(lines)

    @property
    def text(self) -> str:
        """The verdicts on one line."""
        return "; ".join(self.lines)

    def __getitem__(self, metric: str) -> MetricComparison:
        """Return the comparison by a metric.

        Raises:
            InvalidOptionError: E75, there is no such metric.
        """
        for one in self.metrics:
            if one.metric == metric:
                return one
        names = [one.metric for one in self.metrics]
        near = nearest(metric, names)
        hint = f"did you mean {near!r}?" if near is not None else f"there are {', '.join(names)}"
        raise InvalidOptionError(option="metric", reason=f"there is no {metric!r}; {hint}")

    def __iter__(self) -> Iterator[MetricComparison]:
        return iter(self.metrics)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data, with the verdicts as text."""
        data = attrs.asdict(self)
        data["metrics"] = [{**attrs.asdict(one), "text": one.text} for one in self.metrics]
        data["text"] = self.text
        return data


def _figures(one: MetricComparison, *, turned: bool) -> str:
    """Return the difference with its interval; if ``turned``, the difference is above 0."""
    difference = one.difference or 0.0
    is_turned = turned and difference < 0
    parts = _certainty(one, is_turned=is_turned)
    return f"{number_text(-difference if is_turned else difference, 2)} ({', '.join(parts)})"


def _takes(one: MetricComparison) -> str:
    """Return what it takes to tell, as the end of a sentence."""
    if one.independent < one.fewest:
        return f"; a verdict takes at least {one.fewest} independent cases that differ"
    if not one.more_cases or one.wanted is None:
        return ""
    noun = "case" if one.more_cases == 1 else "cases"
    wanted = number_text(one.wanted, 2)
    return f"; about {_rounded(one.more_cases)} more {noun} would show a difference of {wanted}"


def _certainty(one: MetricComparison, *, is_turned: bool = False) -> list[str]:
    """Return how sure a difference is; if ``is_turned``, the negated difference."""
    parts = [f"no interval: {one.no_interval}"] if one.no_interval and not one.reason else []
    if one.low is not None and one.high is not None:
        low, high = (-one.high, -one.low) if is_turned else (one.low, one.high)
        parts.append(f"{number_text(low, 2)} to {number_text(high, 2)}")
    if one.p_adjusted is not None:
        parts.append(f"p {one.p_adjusted:.2g}")
    return [*parts, f"{one.cases} case{'' if one.cases == 1 else 's'}"]


def _rounded(count: int) -> str:
    """Return a number with two digits that mean something."""
    if count < 100:  # noqa: PLR2004 - it has two digits
        return str(count)
    return f"{int(float(f'{count:.1e}')):,}"
