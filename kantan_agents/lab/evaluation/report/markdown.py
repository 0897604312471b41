"""Evaluations and comparisons as Markdown: the verdict first, then a table."""

from __future__ import annotations

from typing import Final

from kantan_agents.lab.evaluation.comparing.comparison import Comparison
from kantan_agents.lab.evaluation.comparing.number_texts import (
    difference_text,
    interval_text,
    p_text,
    score_text,
)
from kantan_agents.lab.evaluation.experiment.evaluation import Evaluation
from kantan_agents.lab.evaluation.report.variant_table import passes_of, variant_table
from kantan_agents.lab.experiment.markdown import markdown_list, markdown_table, markdown_text

_MOST: Final = 10
_LONGEST: Final = 500


def markdown_of_comparison(comparison: Comparison) -> str:
    """Return the verdicts, and the figures of each metric."""
    verdicts = [one for one in comparison.metrics if one.verdict != "cannot tell"]
    worse = [one.metric for one in verdicts if one.verdict == "worse"]
    better = [one.metric for one in verdicts if one.verdict == "better"]
    said = [
        f"{word} on {', '.join(names)}" for word, names in (("worse", worse), ("better", better)) if names
    ]
    verdict = f"{comparison.b} against {comparison.a}: {'; '.join(said) or 'cannot tell'}"
    rows = [
        [
            one.metric,
            score_text(one.mean_a) or "-",
            score_text(one.mean_b) or "-",
            difference_text(one.difference) or "-",
            interval_text(one.low, one.high) or "-",
            p_text(one.p_adjusted) or "-",
            one.verdict,
        ]
        for one in comparison.metrics
    ]
    interval = f"{comparison.level:.0%} interval"
    columns = ["metric", comparison.a, comparison.b, "difference", interval, "p", "verdict"]
    lines = [f"**{markdown_text(verdict, _LONGEST)}**", "", *markdown_table(columns, rows), ""]
    lines += markdown_list(comparison.lines, 2 * _MOST)
    return "\n".join(lines) + "\n"


def markdown_of_evaluation(evaluation: Evaluation) -> str:
    """Return the scores of each variant, and the runs that failed."""
    failed = evaluation.failed
    made = f"{len(evaluation)} of {evaluation.planned} runs made, {len(failed)} failed"
    columns, rows = variant_table(evaluation)
    lines = [
        f"**{markdown_text(f'{evaluation.name}: {made}', _LONGEST)}**",
        "",
        *markdown_table(columns, rows),
    ]
    passes = [one.text for one in passes_of(evaluation)]
    runs = [f"{one.case_id}, {one.variant}: {one.error}" for one in failed]
    for listed in (passes, runs):
        lines += ["", *markdown_list(listed, _MOST)] if listed else []
    return "\n".join(lines) + "\n"
