"""Prints an evaluation: mean scores, failures, and verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.text import Text

from kantan_agents.cli.terminal.console import ACCENT, BAD, STRONG, pairs, plain, wide_terminal
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import count_text, counted
from kantan_agents.cli.traces.records import short_id
from kantan_agents.lab.evaluation.report.variant_table import passes_of, variant_table

if TYPE_CHECKING:  # comparing needs numpy, showing does not
    from kantan_agents.lab.evaluation import CaseResult, Comparison, Comparisons, Evaluation, VariantResults

_MOST: Final = 5


def show_evaluation(evaluation: Evaluation, comparison: Comparison | Comparisons | None = None) -> None:
    """Print scores, failures, and the comparison of variants."""
    console = wide_terminal()
    runs = f"{count_text(len(evaluation))} of {count_text(evaluation.planned)}"
    facts = [("evaluation", evaluation.name), ("dataset", evaluation.dataset), ("runs", runs)]
    console.print(pairs(facts))
    variants = [evaluation[name] for name in evaluation.variants]
    if evaluation.results:
        console.print()
        names, texts = variant_table(evaluation)
        figures = [Column(one_line(name), right=True, named=True) for name in names[1:]]
        rows = [_row(row, 1 + len(evaluation.metrics)) for row in texts]
        columns = [Column("variant", longest=40), *figures]
        print_lines(console, row_lines(columns, rows, line_width(console)))
    print_section("All repeats", [one.text for one in passes_of(evaluation)])
    print_section("Failed runs", _failed_runs(evaluation.failed))
    print_section("Failed scores", _failed_scores(variants, evaluation.metrics))
    if comparison is not None:
        print_section("Verdict", (*comparison.lines, comparison.note))


def print_section(title: str, lines: Sequence[str]) -> None:
    """Print lines below a title, if any."""
    if not lines:
        return
    console = wide_terminal()
    console.print()
    console.print(plain(title, STRONG))
    for line in lines:
        console.print(plain(f"  {one_line(line)}"), soft_wrap=True)


def _row(row: Sequence[str], failed: int) -> list[Text]:
    styles = {0: ACCENT, failed: BAD if row[failed] != "0" else ""}
    return [cell(text, styles.get(place, "")) for place, text in enumerate(row)]


def _failed_runs(failed: Sequence[CaseResult]) -> list[str]:
    lines = [f"{one.case_id}, {one.variant}: {one.error}{trace_note(one)}" for one in failed[:_MOST]]
    return [*lines, f"and {len(failed) - _MOST} more"] if len(failed) > _MOST else lines


def trace_note(result: CaseResult) -> str:
    """Return " (TRACE_ID)", or ""."""
    return "" if result.trace_id is None else f" ({short_id(result.trace_id)})"


def _failed_scores(variants: Sequence[VariantResults], metrics: Sequence[str]) -> list[str]:
    lines = []
    for metric in metrics:
        errors = [
            score.error
            for results in variants
            for one in results.results
            if (score := one.scores.get(metric)) is not None and score.error is not None
        ]
        if errors:
            lines.append(f"{metric}: {counted(len(errors), 'score')}, the first: {errors[0]}")
    return lines
