"""``eval report``: writes a comparison as a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from kantan_agents.cli.eval.compare_variants import ComparisonOptions
from kantan_agents.cli.eval.find_variants import find_compared
from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.cli.terminal.show_quantities import counted
from kantan_agents.cli.traces.export import check_target
from kantan_agents.lab.evaluation import compare, compare_all
from kantan_agents.lab.evaluation.report import write_report, write_report_of_all


def report_comparison(
    path: Path,
    names: Sequence[str],
    evaluation: str | None,
    options: ComparisonOptions,
    output: str,
    *,
    force: bool,
    as_json: bool,
) -> None:
    """Write the page."""
    target = check_target(output, path, force=force)
    found = find_compared(path, names, evaluation)
    cases = [case for one in found for case in one.evaluation.cases]
    results = [one.results for one in found]
    if len(found) == 2:  # noqa: PLR2004 - a pair
        comparison = options.made(compare, results)
        write_report(comparison, results[0], results[1], target, cases=cases)
        compared_cases = comparison.cases
        shown = [one.metric for one in comparison]
    else:
        comparisons = options.made(compare_all, results)
        write_report_of_all(comparisons, results, target, cases=cases)
        compared_cases = max(one.cases for one in comparisons)
        shown = list(dict.fromkeys(one.metric for one in comparisons.metrics))
    if as_json:
        data = {"path": output, "size": target.stat().st_size, "cases": compared_cases, "metrics": shown}
        typer.echo(json_text(data))
        return
    typer.echo(f"{counted(compared_cases, 'case')} written to {one_line(output)}", err=True)
