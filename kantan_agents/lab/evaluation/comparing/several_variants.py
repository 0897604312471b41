"""Compares several variants with a control, with one correction for all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from kantan_agents.errors import EvaluationNotFoundError, InvalidOptionError
from kantan_agents.lab.evaluation.comparing.compare_variants import compare_pair
from kantan_agents.lab.evaluation.comparing.comparison import (
    Comparison,
    Looks,
    MetricComparison,
    columns_of_table,
    markdown_of,
)
from kantan_agents.lab.evaluation.comparing.how import check_results, checked_how, chosen_metrics
from kantan_agents.lab.evaluation.comparing.missing_scores import Missing
from kantan_agents.lab.evaluation.comparing.verdicts import judged
from kantan_agents.lab.evaluation.experiment.evaluation import Evaluation
from kantan_agents.lab.evaluation.experiment.results import VariantResults
from kantan_agents.lab.experiment.flat_rows import Row, Tabular
from kantan_agents.support.nearest import nearest


@attrs.frozen
class Comparisons(Tabular):
    """Several variants, each compared with the same control.

    Attributes:
        control: Name of the variant that all others are compared with.
        comparisons: One for each other variant. Their p are adjusted for all variants and metrics together
            (Holm), so the probability that any verdict is false is at most 1 - ``level``. Each interval holds
            alone, not all together.
        level: Confidence level.
        looks: ``"one"`` if the verdicts hold for one look, ``"any"`` if they hold at any look.
    """

    control: str
    comparisons: tuple[Comparison, ...]
    level: float
    looks: Looks

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of the variants that the verdicts are about."""
        return tuple(one.b for one in self.comparisons)

    @property
    def metrics(self) -> tuple[MetricComparison, ...]:
        """One for each variant and metric."""
        return tuple(one for each in self.comparisons for one in each)

    @property
    def note(self) -> str:
        """The adjustment of the verdicts, and how many looks they hold for."""
        tests = sum(one.p_adjusted is not None for one in self.metrics)
        adjusted = f"the verdicts are adjusted for all {tests} tests together (Holm); " if tests > 1 else ""
        known = all(one.is_order_known for one in self.comparisons)
        looks = attrs.evolve(
            self.comparisons[0], is_order_known=known, is_grown=any(one.is_grown for one in self.comparisons)
        ).note
        return f"{adjusted}each interval holds on its own; {looks}"

    @property
    def lines(self) -> tuple[str, ...]:
        """The verdicts, one for each variant and metric, and the numbers of failed runs."""
        return tuple(dict.fromkeys(line for one in self.comparisons for line in one.lines_of_variant))

    @property
    def text(self) -> str:
        """The verdicts on one line, with ``note``."""
        return "; ".join((*self.lines, self.note))

    def __getitem__(self, variant: str) -> Comparison:
        """Return the comparison of the control and a variant.

        Raises:
            EvaluationNotFoundError: E104, the variant is missing.
        """
        for one in self.comparisons:
            if one.b == variant:
                return one
        near = nearest(variant, self.variants)
        known = f"did you mean {near!r}?" if near else f"there are {', '.join(map(repr, self.variants))}"
        raise EvaluationNotFoundError(
            name=variant, reason=f"it is not compared with {self.control!r}; {known}"
        )

    def __iter__(self) -> Iterator[Comparison]:
        return iter(self.comparisons)

    def __len__(self) -> int:
        return len(self.comparisons)

    def rows(self) -> list[Row]:
        """Return a row for each variant and metric; see ``Tabular.rows``."""
        return [row for one in self.comparisons for row in one.rows()]

    def to_markdown(self) -> str:
        """Return the verdicts and a table as Markdown, for a comment on a pull request."""
        columns = ["variant", "metric", self.control, "variant's", *columns_of_table(self.level)]
        rows = [[one.b, one.metric, *one.cells] for one in self.metrics]
        return markdown_of(
            [one.verdict_text for one in self.comparisons], columns, rows, self.lines, self.note
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON data, with the verdicts as text."""
        return {
            "control": self.control,
            "comparisons": [one.to_dict() for one in self.comparisons],
            "level": self.level,
            "looks": self.looks,
            "note": self.note,
            "text": self.text,
        }


def compare_all(
    control: Evaluation | VariantResults,
    *others: VariantResults,
    metrics: str | Iterable[str] | None = None,
    wanted: Mapping[str, float] | None = None,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    missing: Missing = "worst",
    looks: Looks | None = None,
) -> Comparisons:
    """Compare several variants with a control, with one correction for all variants and metrics.

        print(compare_all(evaluation).text)
        print(compare_all(evaluation["v1"], evaluation["v2"], evaluation["v3"])["v3"].text)

    Each variant is another chance of a false verdict: ten variants that are no better than the control,
    compared one by one, give one in 26 of 100 experiments. Here at most 5 do. The more there are, the larger
    a difference must be: pass the ``metrics`` that decide.

    Args:
        control: The results that all others are compared with; or an evaluation, whose first variant is the
            control.
        others: The results of the other variants; for an evaluation, its other variants.
        metrics: As for `compare`.
        wanted: As for `compare`.
        level: Confidence level of each interval, and of all verdicts together.
        resamples: As for `compare`.
        seed: The same seed gives the same result.
        missing: As for `compare`.
        looks: As for `compare`.

    Raises:
        NotComparableError: E105, a variant has no case in common with the control, or there is no metric.
        InvalidOptionError: E75, there is one variant only, a variant is given twice, or an argument is
            invalid.

    Source: as for `holm`.
    """
    given = _given(control, others)
    how = checked_how(level, resamples, seed, wanted, missing, looks, given)
    names = _names(given)
    chosen = chosen_metrics(metrics, *given)
    how = attrs.evolve(how, tests=len(chosen) * (len(given) - 1))
    pairs = [
        compare_pair(given[0], other, (names[0], name), chosen, how)
        for other, name in zip(given[1:], names[1:], strict=True)
    ]
    return Comparisons(names[0], tuple(judged(pairs)), level, how.looks)


def _given(control: Any, others: Sequence[VariantResults]) -> list[VariantResults]:
    if isinstance(control, Evaluation):
        if others:
            reason = "must not follow an evaluation, whose variants are all compared"
            raise InvalidOptionError(option="others", reason=reason)
        given = [control[name] for name in control.variants]
    else:
        check_results(control=control)
        for one in others:
            check_results(others=one)
        given = [control, *others]
    if len(given) == 1:
        raise InvalidOptionError(option="others", reason=f"{given[0].variant!r} is the only variant")
    return given


def _names(given: Sequence[VariantResults]) -> list[str]:
    """Return unique names, with the name of the evaluation where needed."""
    counts = Counter(one.variant for one in given)
    names = [
        one.variant if counts[one.variant] == 1 else f"{one.variant} of {one.evaluation}" for one in given
    ]
    for name, count in Counter(names).items():
        if count > 1:
            raise InvalidOptionError(option="others", reason=f"{name!r} is given twice")
    return names
