"""``kantan-agents eval compare``: of two variants, or of several with one correction for all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

from kantan_agents.cli.eval.compare_variants import columns_of, compare_variants, options_named, row_of
from kantan_agents.cli.eval.conditions import Condition, check_conditions, met_conditions
from kantan_agents.cli.eval.find_variants import FoundVariant, find_compared
from kantan_agents.cli.eval.show_evaluation import print_section
from kantan_agents.cli.terminal.console import pairs, wide_terminal
from kantan_agents.cli.terminal.failures import EXIT_FAILED
from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import count_text
from kantan_agents.lab.evaluation import Comparisons, compare_all
from kantan_agents.lab.evaluation.comparing.changed_cases import changed_cases

if TYPE_CHECKING:
    from kantan_agents.lab.evaluation.comparing.comparison import Looks


def compare_named(
    path: Path,
    names: Sequence[str],
    evaluation: str | None,
    metrics: Sequence[str] | None,
    conditions: Sequence[Condition],
    looks: str | None,
    *,
    as_json: bool,
) -> None:
    """Print the comparison of variants with the first.

    Raises:
        EvaluationNotFoundError: E104, there is no such evaluation or variant.
        NotComparableError: E105, they have no case in common.
        InvalidOptionError: E75, there is no such metric, or only one variant.
        TraceDatabaseError: E60, the database cannot be used.
        typer.Exit: A condition is met.
    """
    found = find_compared(path, names, evaluation)
    if len(found) == 2:  # noqa: PLR2004 - a pair
        compare_variants(found, metrics, conditions, looks, as_json=as_json)
    else:
        _compare_several(found, compared_all(found, metrics, looks), conditions, as_json=as_json)


def compared_all(
    found: Sequence[FoundVariant], metrics: Sequence[str] | None, looks: str | None
) -> Comparisons:
    """Return the comparisons of variants with the first; arguments and errors as for ``compared``."""
    results = [one.results for one in found]
    with options_named():
        return compare_all(*results, metrics=metrics or None, looks=cast("Looks | None", looks))


def _compare_several(
    found: Sequence[FoundVariant],
    comparisons: Comparisons,
    conditions: Sequence[Condition],
    *,
    as_json: bool,
) -> None:
    for one in comparisons:
        check_conditions(conditions, one)
    if as_json:
        changed = {
            one.b: [case.to_dict() for cases in changes.values() for case in cases]
            for one, other in zip(comparisons, found[1:], strict=True)
            for changes in (changed_cases(one, found[0].results, other.results),)
        }
        evaluations = [one.evaluation.name for one in found]
        data = {"evaluations": evaluations, **comparisons.to_dict(), "changed_cases": changed}
        typer.echo(json_text(data, default=str))
    else:
        _show(found, comparisons)
    met = [one for each in comparisons for one in met_conditions(conditions, each)]
    for condition, metric in met:
        typer.echo(one_line(f"failed {condition} with {metric.b}: {metric.text}"), err=True)
    if met:
        raise typer.Exit(EXIT_FAILED)


def _show(found: Sequence[FoundVariant], comparisons: Comparisons) -> None:
    console = wide_terminal()
    names = (comparisons.control, *comparisons.variants)
    shown = [f"{name} ({one.evaluation.name})" for name, one in zip(names, found, strict=True)]
    cases = ", ".join(dict.fromkeys(count_text(one.cases) for one in comparisons))
    console.print(pairs([("control", shown[0]), ("variants", ", ".join(shown[1:])), ("cases", cases)]))
    console.print()
    columns = [Column("variant", longest=24), *columns_of(comparisons.level)]
    # By metric, so that its variants are below each other.
    metrics = dict.fromkeys(one.metric for one in comparisons.rows)
    rows = [
        [cell(one.b), *row_of(one)] for metric in metrics for one in comparisons.rows if one.metric == metric
    ]
    print_lines(console, row_lines(columns, rows, line_width(console)))
    print_section("Verdict", (*comparisons.lines, comparisons.note))
