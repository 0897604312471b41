"""The comparison of two variants, metric by metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.comparing.missing_scores import Missing
from kantan_agents.lab.evaluation.comparing.number_texts import (
    difference_text,
    interval_text,
    number_text,
    p_text,
    score_text,
)
from kantan_agents.lab.evaluation.comparing.paired_values import FIGURES
from kantan_agents.lab.evaluation.experiment.results import Better
from kantan_agents.lab.experiment.flat_rows import Row, Tabular, flat
from kantan_agents.lab.experiment.markdown import markdown_list, markdown_table, markdown_text
from kantan_agents.support.nearest import nearest

Verdict = Literal["better", "worse", "cannot tell"]
NO_DIFFERENCE: Final = "no case differs"
_MOST_LINES: Final = 20
_LONGEST: Final = 1_000

Looks = Literal["one", "any"]
"""One look, or any number of looks while cases are added."""


@attrs.frozen
class MetricComparison:
    """Two variants compared by one metric.

    Attributes:
        metric: The metric.
        a: Name of the baseline.
        b: Name of the variant that the verdict is about.
        better: Whether a higher or a lower value is better.
        is_binary: Whether all values are 0 or 1.
        cases: Number of cases with a value on both sides.
        independent: Number of independent cases; a conversation counts as one.
        mean_a: Mean over these cases, repeats averaged first; None without cases.
        mean_b: The same for ``b``.
        difference: ``mean_b`` minus ``mean_a``. With ``looks="any"``, each conversation counts once.
        low: Lower bound of the interval of the difference; None if ``no_interval`` states why.
        high: Upper bound.
        p: The p of the hypothesis that they do not differ.
        p_adjusted: p adjusted for the number of compared metrics (Holm).
        detectable: Smallest true difference that these cases would have shown, with a probability of 80 %.
        wanted: The difference that ``more_cases`` is about.
        more_cases: Number of additional cases needed to show ``wanted``; None if unknown.
        wins: Ids of the cases in which ``b`` is better.
        ties: Ids of the cases in which both are equal.
        losses: Ids of the cases in which ``b`` is worse.
        verdict: Whether ``b`` is better.
        reason: The reason for "cannot tell", unless it is the number of cases.
        no_interval: Why the interval is missing; None otherwise.
        fewest: Smallest number of differing independent cases for a verdict, given the other metrics; 0 if no
            number suffices.
        missing: For each variant that lacks scores in these cases, the number of runs that count as
            ``worst``.
        worst: The value of such a run; None if there are none.
        left_out: Number of common cases that are omitted because one has no value.
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
    missing: Mapping[str, int] = attrs.field(factory=dict)
    worst: float | None = None
    left_out: int = 0

    @property
    def is_notable(self) -> bool:
        """Whether it belongs in the text; ``failed``, ``cost`` and the like only if a case differs."""
        return bool(self.wins or self.losses) or self.metric not in FIGURES

    @property
    def text(self) -> str:
        """The verdict in a few words, and the number of missing scores."""
        return "; ".join([self._verdict_text, *self._notes])

    @property
    def _notes(self) -> Iterator[str]:
        for name, count in self.missing.items():
            runs = f"{count} {'run' if count == 1 else 'runs'} of {name} without a score"
            yield f"{runs} {'counts' if count == 1 else 'count'} as {number_text(self.worst or 0.0, 3)}"
        if self.left_out:
            cases = f"{self.left_out} {'case' if self.left_out == 1 else 'cases'}"
            yield f"{cases} without a value on both sides left out"

    @property
    def _verdict_text(self) -> str:
        if self.verdict != "cannot tell":
            return f"{self.b} {self.verdict} on {self.metric} by {_figures(self, turned=True)}"
        if self.reason is not None:
            no_case_differs = self.independent > 1 and not self.difference
            known = f" ({', '.join(_certainty(self))})" if no_case_differs else ""
            return f"{self.metric}: cannot tell, {self.reason}{known}{_takes(self)}"
        return f"{self.metric}: cannot tell, the difference is {_figures(self, turned=False)}{_takes(self)}"

    @property
    def cells(self) -> list[str]:
        """Means, difference, interval, p and verdict as strings; ``"-"`` if unknown."""
        return [
            score_text(self.mean_a) or "-",
            score_text(self.mean_b) or "-",
            difference_text(self.difference) or "-",
            interval_text(self.low, self.high) or "-",
            p_text(self.p_adjusted) or "-",
            self.verdict,
        ]

    @property
    def text_of_variant(self) -> str:
        """``text`` with the name of ``b`` in any case."""
        return f"{self.b} on {self.text}" if self.verdict == "cannot tell" else self.text


@attrs.frozen
class Comparison(Tabular):
    """Two variants compared by all metrics.

    Attributes:
        a: Name of the baseline.
        b: Name of the variant that the verdicts are about.
        metrics: One comparison for each metric.
        cases: Number of cases that both variants ran.
        unpaired: Ids of the omitted cases that only one of them ran.
        failed: Number of failed runs of each variant.
        failed_scores: For each metric with failed scores, their number by variant.
        level: Confidence level.
        missing: How runs without a score count: ``"worst"`` or ``"ignore"``.
        looks: ``"one"`` if the verdicts hold for one look, ``"any"`` if they hold at any look.
        is_grown: Whether cases were added to an evaluation after an earlier start.
        is_order_known: Whether the order of the runs is known. If not, ``looks="any"`` uses the order of the
            dataset.
    """

    a: str
    b: str
    metrics: tuple[MetricComparison, ...]
    cases: int
    unpaired: tuple[str, ...]
    failed: Mapping[str, int]
    failed_scores: Mapping[str, Mapping[str, int]]
    level: float
    missing: Missing = "worst"
    looks: Looks = "one"
    is_grown: bool = False
    is_order_known: bool = True

    @property
    def note(self) -> str:
        """How many looks the verdicts hold for."""
        if self.looks == "one":
            if self.is_grown:
                return "the verdicts hold for one look, and cases were added after an earlier one"
            return (
                "the verdicts hold for one look; to add cases and look again, compare with looks "
                '"any" from the first look on'
            )
        note = "the verdicts hold at any look: you may add cases and look again"
        if self.is_grown:
            note += (
                "; a verdict for one look that you read before cases were added is a chance of its own, "
                f"of {100 * (1 - self.level):.3g}%, to be false"
            )
        if self.is_order_known:
            return note
        return f"{note}, at the end of the dataset, as the order of the runs is not known"

    @property
    def lines(self) -> tuple[str, ...]:
        """One verdict for each metric, and the numbers of failed runs, failed scores and omitted cases."""
        return (*(one.text for one in self.metrics if one.is_notable), *self._failures)

    @property
    def lines_of_variant(self) -> tuple[str, ...]:
        """``lines`` with the variant's name in each, for several variants."""
        return (*(one.text_of_variant for one in self.metrics if one.is_notable), *self._failures)

    @property
    def _failures(self) -> tuple[str, ...]:
        lines = []
        for name, count in self.failed.items():
            if count:
                lines.append(f"{count} failed {'run' if count == 1 else 'runs'} of {name}")
        for metric, counts in self.failed_scores.items():
            for name, count in counts.items():
                if count:
                    lines.append(
                        f"{count} failed {'score' if count == 1 else 'scores'} of {name} on {metric}"
                    )
        if self.unpaired:
            count = len(self.unpaired)
            lines.append(f"{count} {'case' if count == 1 else 'cases'} of one of them only left out")
        return tuple(lines)

    @property
    def text(self) -> str:
        """The verdicts on one line, and how many looks they hold for."""
        return "; ".join((*self.lines, self.note))

    def __getitem__(self, metric: str) -> MetricComparison:
        """Return the comparison by a metric.

        Raises:
            InvalidOptionError: E75, the metric is missing.
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

    def rows(self) -> list[Row]:
        """Return a row for each metric; see ``Tabular.rows``."""
        return [flat(one) for one in self.to_dict()["metrics"]]

    def to_markdown(self) -> str:
        """Return the verdicts and a table as Markdown, for a comment on a pull request."""
        columns = ["metric", self.a, self.b, *columns_of_table(self.level)]
        rows = [[one.metric, *one.cells] for one in self.metrics]
        return markdown_of([self.verdict_text], columns, rows, self.lines, self.note)

    @property
    def verdict_text(self) -> str:
        """The metrics on which ``b`` is worse or better, without numbers."""
        by_verdict = {
            word: [one.metric for one in self.metrics if one.verdict == word] for word in ("worse", "better")
        }
        said = "; ".join(f"{word} on {', '.join(names)}" for word, names in by_verdict.items() if names)
        return f"{self.b} against {self.a}: {said or 'cannot tell'}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data, with the verdicts as text."""
        data = attrs.asdict(self)
        data["metrics"] = [{**attrs.asdict(one), "text": one.text} for one in self.metrics]
        return {**data, "note": self.note, "text": self.text}


def columns_of_table(level: float) -> list[str]:
    """Return the column names of `MetricComparison.cells` after the means."""
    return ["difference", f"{level:.0%} interval", "p", "verdict"]


def markdown_of(
    verdicts: Sequence[str],
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    lines: Sequence[str],
    note: str,
) -> str:
    """Return verdicts, a table and remarks as Markdown; the note always appears."""
    bold = [line for verdict in verdicts for line in (f"**{markdown_text(verdict, _LONGEST)}**", "")]
    listed = [*markdown_list(lines, _MOST_LINES, _LONGEST), *markdown_list([note], 1, _LONGEST)]
    return "\n".join([*bold, *markdown_table(columns, rows), "", *listed, ""])


def _figures(one: MetricComparison, *, turned: bool) -> str:
    """If ``turned``, the difference is above 0."""
    difference = one.difference or 0.0
    is_turned = turned and difference < 0
    parts = _certainty(one, is_turned=is_turned)
    return f"{number_text(-difference if is_turned else difference, 2)} ({', '.join(parts)})"


def _takes(one: MetricComparison) -> str:
    if one.independent < one.fewest:
        return f"; a verdict takes at least {one.fewest} independent cases that differ"
    if not one.more_cases or one.wanted is None:
        return ""
    noun = "case" if one.more_cases == 1 else "cases"
    wanted = number_text(one.wanted, 2)
    return f"; about {_rounded(one.more_cases)} more {noun} would show a difference of {wanted}"


def _certainty(one: MetricComparison, *, is_turned: bool = False) -> list[str]:
    parts = [f"no interval: {one.no_interval}"] if one.no_interval and not one.reason else []
    if one.low is not None and one.high is not None:
        low, high = (-one.high, -one.low) if is_turned else (one.low, one.high)
        parts.append(f"{number_text(low, 2)} to {number_text(high, 2)}")
    if one.p_adjusted is not None:
        parts.append(f"p {one.p_adjusted:.2g}")
    return [*parts, f"{one.cases} case{'' if one.cases == 1 else 's'}"]


def _rounded(count: int) -> str:
    """Return two significant digits."""
    if count < 100:  # noqa: PLR2004 - it has two digits
        return str(count)
    return f"{int(float(f'{count:.1e}')):,}"
