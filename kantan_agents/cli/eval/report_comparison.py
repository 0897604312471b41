"""``kantan-agents eval report``: writes the comparison of two variants as a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from kantan_agents.cli.eval.compare_variants import compared, find_both
from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.cli.terminal.show_quantities import counted
from kantan_agents.cli.traces.export import check_target
from kantan_agents.lab.evaluation.comparing.missing_scores import Missing
from kantan_agents.lab.evaluation.report import write_report


def report_comparison(
    path: Path,
    names: tuple[str, str],
    evaluation: str | None,
    metrics: Sequence[str] | None,
    output: str,
    missing: Missing,
    *,
    force: bool,
    as_json: bool,
) -> None:
    """Write the page.

    Raises:
        FileArgumentError: E79, the file cannot be written, or exists already.
        EvaluationNotFoundError: E104, there is no such evaluation or variant.
        NotComparableError: E105, they have no case in common.
        InvalidOptionError: E75, there is no such metric.
        TraceDatabaseError: E60, the database cannot be used.
    """
    target = check_target(output, path, force=force)
    found = find_both(path, names, evaluation)
    comparison = compared(found, metrics, missing)
    cases = [case for one in found for case in one.evaluation.cases]
    write_report(comparison, found[0].results, found[1].results, target, cases=cases)
    if as_json:
        shown = [one.metric for one in comparison.metrics]
        data = {"path": output, "size": target.stat().st_size, "cases": comparison.cases, "metrics": shown}
        typer.echo(json_text(data))
        return
    typer.echo(f"{counted(comparison.cases, 'case')} written to {one_line(output)}", err=True)
