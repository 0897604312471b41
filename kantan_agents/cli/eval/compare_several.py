"""``eval compare``: several variants share one correction."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kantan_agents.cli.eval.compare_variants import ComparisonOptions, columns_of, compare_variants, row_of
from kantan_agents.cli.eval.conditions import Condition, check_conditions, exit_if_met
from kantan_agents.cli.eval.find_variants import FoundVariant, find_compared
from kantan_agents.cli.eval.show_evaluation import print_section
from kantan_agents.cli.terminal.console import pairs, wide_terminal
from kantan_agents.cli.terminal.output_options import FormOptions
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import count_text
from kantan_agents.lab.evaluation import Comparisons, compare_all
from kantan_agents.lab.evaluation.comparing.changed_cases import changed_cases


def compare_named(
    path: Path,
    names: Sequence[str],
    evaluation: str | None,
    options: ComparisonOptions,
    conditions: Sequence[Condition],
    form: FormOptions,
) -> None:
    """Compare variants with the first one."""
    found = find_compared(path, names, evaluation)
    if len(found) == 2:  # noqa: PLR2004 - a pair
        compare_variants(found, options, conditions, form)
    else:
        _compare_several(found, options, conditions, form)


def _compare_several(
    found: Sequence[FoundVariant],
    options: ComparisonOptions,
    conditions: Sequence[Condition],
    form: FormOptions,
) -> None:
    comparisons = options.made(compare_all, [one.results for one in found])
    check_conditions(conditions, comparisons.comparisons)

    def data() -> dict[str, Any]:
        changed = {
            one.b: [case.to_dict() for cases in changes.values() for case in cases]
            for one, other in zip(comparisons, found[1:], strict=True)
            for changes in (changed_cases(one, found[0].results, other.results),)
        }
        evaluations = [one.evaluation.name for one in found]
        return {"evaluations": evaluations, **comparisons.to_dict(), "changed_cases": changed}

    if not form.print(comparisons, data):
        _show(found, comparisons)
    exit_if_met(conditions, comparisons.comparisons)


def _show(found: Sequence[FoundVariant], comparisons: Comparisons) -> None:
    console = wide_terminal()
    names = (comparisons.control, *comparisons.variants)
    shown = [f"{name} ({one.evaluation.name})" for name, one in zip(names, found, strict=True)]
    cases = ", ".join(dict.fromkeys(count_text(one.cases) for one in comparisons))
    console.print(pairs([("control", shown[0]), ("variants", ", ".join(shown[1:])), ("cases", cases)]))
    console.print()
    columns = [Column("variant", longest=24), *columns_of(comparisons.level)]
    # Grouped by metric, so that its variants are below each other.
    metrics = dict.fromkeys(one.metric for one in comparisons.metrics)
    rows = [
        [cell(one.b), *row_of(one)]
        for metric in metrics
        for one in comparisons.metrics
        if one.metric == metric
    ]
    print_lines(console, row_lines(columns, rows, line_width(console)))
    print_section("Verdict", (*comparisons.lines, comparisons.note))
