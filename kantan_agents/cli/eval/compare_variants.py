"""``kantan-agents eval compare``: prints whether one variant is better than another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import typer
from rich.text import Text

from kantan_agents.cli.eval.conditions import Condition, check_conditions, met_conditions
from kantan_agents.cli.eval.find_variants import FoundVariant, find_variant
from kantan_agents.cli.eval.show_evaluation import print_section, trace_note
from kantan_agents.cli.terminal.console import ACCENT, BAD, GOOD, LABEL, pairs, wide_terminal
from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.cli.terminal.output_options import FormOptions
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import count_text
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation import Comparison, MetricComparison, compare
from kantan_agents.lab.evaluation.comparing.changed_cases import ChangedCase, changed_cases
from kantan_agents.lab.evaluation.comparing.missing_scores import Missing
from kantan_agents.lab.evaluation.comparing.number_texts import (
    difference_text,
    interval_text,
    p_text,
    score_text,
)

_MOST: Final = 5
_STYLES: Final = {"better": GOOD, "worse": BAD, "cannot tell": LABEL}


def compare_variants(
    path: Path,
    names: tuple[str, str],
    evaluation: str | None,
    metrics: Sequence[str] | None,
    conditions: Sequence[Condition],
    missing: Missing,
    form: FormOptions,
) -> None:
    """Print the comparison of two variants.

    Raises:
        EvaluationNotFoundError: E104, there is no such evaluation or variant.
        NotComparableError: E105, they have no case in common.
        InvalidOptionError: E75, there is no such metric.
        TraceDatabaseError: E60, the database cannot be used.
        typer.Exit: A condition is met.
    """
    found = find_both(path, names, evaluation)
    comparison = compared(found, metrics, missing)
    check_conditions(conditions, comparison)
    changes = changed_cases(comparison, found[0].results, found[1].results)

    def data() -> dict[str, Any]:
        listed = [one.to_dict() for ones in changes.values() for one in ones]
        evaluations = [one.evaluation.name for one in found]
        return {"evaluations": evaluations, **comparison.to_dict(), "changed_cases": listed}

    if not form.print(comparison, data):
        _show(found, comparison, changes)
    met = met_conditions(conditions, comparison)
    for condition, why in met:
        typer.echo(one_line(f"failed {condition}: {why}"), err=True)
    if met:
        raise typer.Exit(EXIT_FAILED)


def find_both(
    path: Path, names: tuple[str, str], evaluation: str | None
) -> tuple[FoundVariant, FoundVariant]:
    """Return the two variants; arguments and errors as for ``find_variant``."""
    store = open_store(path)
    return find_variant(store, names[0], evaluation), find_variant(store, names[1], evaluation)


def compared(
    found: tuple[FoundVariant, FoundVariant], metrics: Sequence[str] | None, missing: Missing
) -> Comparison:
    """Return the comparison of two variants by these metrics, or by all.

    Raises:
        NotComparableError: E105, they have no case in common.
        InvalidOptionError: E75, there is no such metric.
    """
    try:
        return compare(found[0].results, found[1].results, metrics=metrics or None, missing=missing)
    except InvalidOptionError as error:
        option = "--metric" if error.option == "metrics" else error.option
        raise InvalidOptionError(option=option, reason=error.reason) from error


def _show(
    found: tuple[FoundVariant, FoundVariant],
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
    rows = [_row(one) for one in comparison.metrics]
    print_lines(console, row_lines(_columns(comparison), rows, line_width(console)))
    print_section("Verdict", comparison.lines)
    for metric, cases_of_metric in changes.items():
        print_section(_title(comparison[metric]), _changes(cases_of_metric))


def _columns(comparison: Comparison) -> list[Column]:
    level = f"{comparison.level:.0%} interval"
    return [
        Column("metric", longest=24),
        Column("a", right=True, named=True),
        Column("b", right=True, named=True),
        Column("difference", right=True, named=True),
        Column(level, right=True, named=True),
        Column("p", right=True, named=True),
        Column("win/tie/loss", right=True, named=True, drop=1),
        Column("verdict"),
    ]


def _row(one: MetricComparison) -> list[Text]:
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
