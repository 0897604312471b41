"""Prints an evaluation: the mean scores of each variant, what has failed, and the verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from rich.text import Text

from kantan_agents.cli.terminal.console import ACCENT, BAD, STRONG, pairs, plain, wide_terminal
from kantan_agents.cli.terminal.plain import one_line
from kantan_agents.cli.terminal.rows import Column, cell, line_width, print_lines, row_lines
from kantan_agents.cli.terminal.show_quantities import count_text, counted
from kantan_agents.cli.traces.records import short_id
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation import (
    CaseResult,
    Comparison,
    Evaluation,
    PassesAll,
    VariantResults,
    passes_all,
)
from kantan_agents.lab.evaluation.comparing.number_texts import score_text
from kantan_agents.lab.evaluation.comparing.paired_values import better_of
from kantan_agents.lab.experiment.prices import Figures

_MOST: Final = 5


def show_evaluation(evaluation: Evaluation, comparison: Comparison | None = None) -> None:
    """Print the scores of an evaluation, its failures, and the comparison of its variants."""
    console = wide_terminal()
    runs = f"{count_text(len(evaluation))} of {count_text(evaluation.planned)}"
    facts = [("evaluation", evaluation.name), ("dataset", evaluation.dataset), ("runs", runs)]
    console.print(pairs(facts))
    variants = [evaluation[name] for name in evaluation.variants]
    metrics = list(dict.fromkeys(metric for one in variants for metric in one.metrics))
    if evaluation.results:
        console.print()
        judges = {name: judges_of(evaluation, name) for name in evaluation.variants}
        has_judges = any(one.tokens for one in judges.values())
        columns = _columns(metrics, has_judges=has_judges)
        rows = [
            [*_row(one, metrics), *([cell(count_text(judges[one.variant].tokens))] if has_judges else [])]
            for one in variants
        ]
        print_lines(console, row_lines(columns, rows, line_width(console)))
    print_section("All repeats", [one.text for one in passes_of(evaluation)])
    print_section("Failed runs", _failed_runs(evaluation.failed))
    print_section("Failed scores", _failed_scores(variants, metrics))
    if comparison is not None:
        print_section("Verdict", comparison.lines)


def print_section(title: str, lines: Sequence[str]) -> None:
    """Print lines below a title; nothing if there are none."""
    if not lines:
        return
    console = wide_terminal()
    console.print()
    console.print(plain(title, STRONG))
    for line in lines:
        console.print(plain(f"  {one_line(line)}"), soft_wrap=True)


def judges_of(evaluation: Evaluation, variant: str) -> Figures:
    """Return what the judges of a variant have used, in all starts."""
    used = [one for spender, one in evaluation.spent[variant].items() if spender != "runs"]
    return sum(used, Figures(cost=0.0))


def passes_of(evaluation: Evaluation) -> list[PassesAll]:
    """Return how often all repeats of a case pass, for each variant and each metric from 0 to 1."""
    found = []
    for name in evaluation.variants if evaluation.repeats > 1 else ():
        results = evaluation[name]
        for metric in results.metrics:
            values = [score.value for one in results.results if (score := one.scores.get(metric)) is not None]
            is_rate = all(value is None or 0 <= value <= 1 for value in values)
            if is_rate and better_of(metric, results) == "higher":
                with suppress(InvalidOptionError):  # not one case has a run with a score
                    found.append(passes_all(results, metric))
    return [one for one in found if one.k > 1]


def _columns(metrics: Sequence[str], *, has_judges: bool) -> list[Column]:
    return [
        Column("variant", longest=40),
        *(Column(one_line(metric), right=True, named=True) for metric in metrics),
        Column("failed", right=True, named=True),
        Column("tokens", right=True, named=True),
        Column("cost", right=True, named=True),
        *([Column("judge tokens", right=True, named=True)] if has_judges else []),
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
