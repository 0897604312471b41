"""``eval compare`` of two variants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import attrs
from rich.text import Text

from kantan_agents.cli.eval.conditions import Condition, check_conditions, exit_if_met
from kantan_agents.cli.eval.find_variants import FoundVariant
from kantan_agents.cli.eval.show_evaluation import print_section, trace_note
from kantan_agents.cli.terminal.console import ACCENT, BAD, GOOD, LABEL, pairs, wide_terminal
from kantan_agents.cli.terminal.output_options import FormOptions
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import count_text, counted
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation import Comparison, MetricComparison, VariantResults, compare
from kantan_agents.lab.evaluation.comparing.changed_cases import ChangedCase, changed_cases
from kantan_agents.lab.evaluation.comparing.number_texts import (
    difference_text,
    interval_text,
    p_text,
    score_text,
)

Made = TypeVar("Made")

_MOST: Final = 5
_OPTIONS: Final = {"metrics": "--metric", "missing": "--missing", "looks": "--looks"}
_STYLES: Final = {"better": GOOD, "worse": BAD, "cannot tell": LABEL}


@attrs.frozen
class ComparisonOptions:
    """Options of the comparison; ``metrics`` None means all."""

    metrics: Sequence[str] | None
    missing: str
    looks: str | None

    def made(self, make: Callable[..., Made], results: Sequence[VariantResults]) -> Made:
        """Return the comparison."""
        try:
            return make(*results, metrics=self.metrics or None, missing=self.missing, looks=self.looks)
        except InvalidOptionError as error:
            option = _OPTIONS.get(error.option, error.option)
            raise InvalidOptionError(option=option, reason=error.reason) from error


def compare_variants(
    found: Sequence[FoundVariant],
    options: ComparisonOptions,
    conditions: Sequence[Condition],
    form: FormOptions,
) -> None:
    """Print the comparison of two variants."""
    comparison = options.made(compare, [one.results for one in found])
    check_conditions(conditions, [comparison])
    changes = changed_cases(comparison, found[0].results, found[1].results)

    def data() -> dict[str, Any]:
        listed = [one.to_dict() for ones in changes.values() for one in ones]
        evaluations = [one.evaluation.name for one in found]
        return {"evaluations": evaluations, **comparison.to_dict(), "changed_cases": listed}

    if not form.print(comparison, data):
        _show(found, comparison, changes)
    exit_if_met(conditions, [comparison])


def _show(
    found: Sequence[FoundVariant],
    comparison: Comparison,
    changes: Mapping[str, Sequence[ChangedCase]],
) -> None:
    console = wide_terminal()
    facts = [
        (label, f"{name} ({one.evaluation.name})")
        for label, name, one in zip(("a", "b"), (comparison.a, comparison.b), found, strict=True)
    ]
    console.print(pairs([*facts, ("cases", count_text(comparison.cases))]))
    console.print()
    rows = [row_of(one) for one in comparison.metrics]
    print_lines(console, row_lines(columns_of(comparison.level), rows, line_width(console)))
    print_section("Verdict", (*comparison.lines, comparison.note, *_other_variants(found)))
    for metric, cases_of_metric in changes.items():
        print_section(_title(comparison[metric]), _changes(cases_of_metric))


def _other_variants(found: Sequence[FoundVariant]) -> list[str]:
    a, b = (one.evaluation for one in found)
    others = len(a.variants) - 2
    if a.name != b.name or others < 1:
        return []
    return [f"{a.name} has {counted(others, 'more variant')}; `eval compare` without B adjusts for all"]


def columns_of(level: float) -> list[Column]:
    """Return the columns of a table of metrics."""
    return [
        Column("metric", longest=24),
        Column("a", right=True, named=True),
        Column("b", right=True, named=True),
        Column("difference", right=True, named=True),
        Column(f"{level:.0%} interval", right=True, named=True),
        Column("p", right=True, named=True),
        Column("win/tie/loss", right=True, named=True, drop=1),
        Column("verdict"),
    ]


def row_of(one: MetricComparison) -> list[Text]:
    """Return the cells of a metric."""
    return [
        cell(one.metric, ACCENT),
        cell(score_text(one.mean_a) or "-"),
        cell(score_text(one.mean_b) or "-"),
        cell(difference_text(one.difference) or "-"),
        cell(interval_text(one.low, one.high) or "-"),
        cell(p_text(one.p_adjusted) or "-"),
        cell(f"{len(one.wins)}/{len(one.ties)}/{len(one.losses)}"),
        cell(one.verdict, _STYLES[one.verdict]),
    ]


def _title(one: MetricComparison) -> str:
    return f"Cases that flipped: {one.metric}" if one.is_binary else f"Largest changes: {one.metric}"


def _changes(cases: Sequence[ChangedCase]) -> list[str]:
    lines = [
        f"{one.change}: {one.case_id}, {_side(one.value_a, one.runs_a)} -> {_side(one.value_b, one.runs_b)}"
        for one in cases[:_MOST]
    ]
    return [*lines, f"and {len(cases) - _MOST} more, see `eval report`"] if len(cases) > _MOST else lines


def _side(value: float, runs: Sequence[Any]) -> str:
    return f"{score_text(value)}{trace_note(runs[0])}"
