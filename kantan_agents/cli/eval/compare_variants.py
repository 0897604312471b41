"""``kantan-agents eval compare``: prints whether one variant is better than another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast

import typer
from rich.text import Text

from kantan_agents.cli.eval.conditions import Condition, check_conditions, met_conditions
from kantan_agents.cli.eval.find_variants import FoundVariant
from kantan_agents.cli.eval.show_evaluation import print_section, trace_note
from kantan_agents.cli.terminal.console import ACCENT, BAD, GOOD, LABEL, pairs, wide_terminal
from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import count_text, counted
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation import Comparison, MetricComparison, compare
from kantan_agents.lab.evaluation.comparing.changed_cases import ChangedCase, changed_cases
from kantan_agents.lab.evaluation.comparing.number_texts import (
    difference_text,
    interval_text,
    p_text,
    score_text,
)

if TYPE_CHECKING:
    from kantan_agents.lab.evaluation.comparing.comparison import Looks

_MOST: Final = 5
_STYLES: Final = {"better": GOOD, "worse": BAD, "cannot tell": LABEL}


def compare_variants(
    found: Sequence[FoundVariant],
    metrics: Sequence[str] | None,
    conditions: Sequence[Condition],
    looks: str | None,
    *,
    as_json: bool,
) -> None:
    """Print the comparison of two variants.

    Raises:
        NotComparableError: E105, they have no case in common.
        InvalidOptionError: E75, there is no such metric.
        typer.Exit: A condition is met.
    """
    comparison = compared(found, metrics, looks)
    check_conditions(conditions, comparison)
    changes = changed_cases(comparison, found[0].results, found[1].results)
    if as_json:
        listed = [one.to_dict() for ones in changes.values() for one in ones]
        evaluations = [one.evaluation.name for one in found]
        data = {"evaluations": evaluations, **comparison.to_dict(), "changed_cases": listed}
        typer.echo(json_text(data, default=str))
    else:
        _show(found, comparison, changes)
    met = met_conditions(conditions, comparison)
    for condition, one in met:
        typer.echo(one_line(f"failed {condition}: {one.text}"), err=True)
    if met:
        raise typer.Exit(EXIT_FAILED)


def compared(found: Sequence[FoundVariant], metrics: Sequence[str] | None, looks: str | None) -> Comparison:
    """Return the comparison of two variants by these metrics, or by all.

    Raises:
        NotComparableError: E105, they have no case in common.
        InvalidOptionError: E75, there is no such metric, or ``looks`` is something else.
    """
    a, b = (one.results for one in found)
    with options_named():
        return compare(a, b, metrics=metrics or None, looks=cast("Looks | None", looks))


@contextmanager
def options_named() -> Iterator[None]:
    """Name the options of the command in errors, instead of the arguments of ``compare``."""
    try:
        yield
    except InvalidOptionError as error:
        option = {"metrics": "--metric", "looks": "--looks"}.get(error.option, error.option)
        raise InvalidOptionError(option=option, reason=error.reason) from error


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
    cases = count_text(comparison.cases)
    if comparison.unpaired:
        cases += f"; {counted(len(comparison.unpaired), 'case')} of one of them only are left out"
    console.print(pairs([*facts, ("cases", cases)]))
    console.print()
    rows = [row_of(one) for one in comparison.metrics]
    print_lines(console, row_lines(columns_of(comparison.level), rows, line_width(console)))
    print_section("Verdict", (*comparison.lines, comparison.note, *_other_variants(found)))
    for metric, cases_of_metric in changes.items():
        print_section(_title(comparison[metric]), _changes(cases_of_metric))


def _other_variants(found: Sequence[FoundVariant]) -> list[str]:
    """Return that a pair was picked out of several variants, if it was."""
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
