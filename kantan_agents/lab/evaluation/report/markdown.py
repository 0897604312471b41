"""An evaluation as Markdown."""

from __future__ import annotations

from typing import Final

from kantan_agents.lab.evaluation.experiment.evaluation import Evaluation
from kantan_agents.lab.evaluation.report.variant_table import passes_of, variant_table
from kantan_agents.lab.experiment.markdown import markdown_list, markdown_table, markdown_text

_MOST: Final = 10
_LONGEST: Final = 500


def markdown_of_evaluation(evaluation: Evaluation) -> str:
    """Return the scores of each variant, and the failed runs."""
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
