"""Prints an evaluation: the mean scores of each variant, what has failed, and the verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.text import Text

from kantan_agents.cli.terminal.console import ACCENT, BAD, STRONG, pairs, plain, wide_terminal
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import count_text, counted
from kantan_agents.cli.traces.records import short_id
from kantan_agents.lab.evaluation import CaseResult, Comparison, Comparisons, Evaluation, VariantResults
from kantan_agents.lab.evaluation.comparing.number_texts import score_text

_MOST: Final = 5


def show_evaluation(evaluation: Evaluation, comparison: Comparison | Comparisons | None = None) -> None:
    """Print the scores of an evaluation, its failures, and the comparison of its variants."""
    console = wide_terminal()
    runs = f"{count_text(len(evaluation))} of {count_text(evaluation.planned)}"
    facts = [("evaluation", evaluation.name), ("dataset", evaluation.dataset), ("runs", runs)]
    console.print(pairs(facts))
    variants = [evaluation[name] for name in evaluation.variants]
    metrics = list(dict.fromkeys(metric for one in variants for metric in one.metrics))
    if evaluation.results:
        console.print()
        columns = _columns(metrics)
        rows = [_row(one, metrics) for one in variants]
        print_lines(console, row_lines(columns, rows, line_width(console)))
    print_section("Failed runs", _failed_runs(evaluation.failed))
    print_section("Failed scores", _failed_scores(variants, metrics))
    if comparison is not None:
        print_section("Verdict", (*comparison.lines, comparison.note))


def print_section(title: str, lines: Sequence[str]) -> None:
    """Print lines below a title; nothing if there are none."""
    if not lines:
        return
    console = wide_terminal()
    console.print()
    console.print(plain(title, STRONG))
    for line in lines:
        console.print(plain(f"  {one_line(line)}"), soft_wrap=True)


def _columns(metrics: Sequence[str]) -> list[Column]:
    return [
        Column("variant", longest=40),
        *(Column(one_line(metric), right=True, named=True) for metric in metrics),
        Column("failed", right=True, named=True),
        Column("tokens", right=True, named=True),
        Column("cost", right=True, named=True),
    ]


def _row(results: VariantResults, metrics: Sequence[str]) -> list[Text]:
    costs = [one.cost for one in results.results]
    known = [cost for cost in costs if cost is not None]
    return [
        cell(results.variant, ACCENT),
        *(cell(_mean(results, metric)) for metric in metrics),
        cell(count_text(len(results.failed)), BAD if results.failed else ""),
        cell(count_text(sum(one.tokens for one in results.results))),
        cell(f"{sum(known):.4g}" if known and len(known) == len(costs) else ""),
    ]


def _mean(results: VariantResults, metric: str) -> str:
    scores = ((one.case_id, one.scores.get(metric)) for one in results.results)
    cases = {case for case, score in scores if score is not None and score.value is not None}
    mean = results.mean(metric)
    return "-" if mean is None else f"{score_text(mean)} ({count_text(len(cases))})"


def _failed_runs(failed: Sequence[CaseResult]) -> list[str]:
    lines = [f"{one.case_id}, {one.variant}: {one.error}{trace_note(one)}" for one in failed[:_MOST]]
    return [*lines, f"and {len(failed) - _MOST} more"] if len(failed) > _MOST else lines


def trace_note(result: CaseResult) -> str:
    """Return the trace id of a run in brackets, with a space before it; "" without a trace."""
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
