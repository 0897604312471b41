"""``eval judge``: the quality of a judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kantan_agents.cli.terminal.console import plain, terminal
from kantan_agents.cli.terminal.plain import json_text, one_line
from kantan_agents.cli.traces.open_store import open_store
from kantan_agents.errors import NotComparableError, UnusableLabelsError

if TYPE_CHECKING:
    from kantan_agents.lab.evaluation import CorrectedComparison, CorrectedScore, Evaluation

_TWO = 2


def measure_judge(
    path: Path,
    name: str,
    metric: str,
    *,
    people: str | None,
    by: Sequence[str] | None,
    threshold: float,
    as_json: bool,
) -> None:
    """Print a judge's quality, and the corrected metrics."""
    store = open_store(path)
    from kantan_agents.cli.eval.find_variants import find_evaluation
    from kantan_agents.lab.evaluation import agreement, judge_quality

    evaluation = find_evaluation(store, name)
    quality = judge_quality(evaluation, metric, people=people, by=by, threshold=threshold)
    agreed = agreement(evaluation, people or metric)
    corrected = [_corrected(make) for make in _figures(evaluation, metric, people, by)]
    if as_json:
        data = {"quality": quality.to_dict(), "agreement": agreed.to_dict(), "corrected": corrected}
        typer.echo(json_text(data))
        return
    console = terminal()
    for line in (*quality.text.splitlines(), agreed.text, *(one["text"] for one in corrected)):
        console.print(plain(one_line(line)))


def _figures(
    evaluation: Evaluation, metric: str, people: str | None, by: Sequence[str] | None
) -> Iterator[Callable[[], CorrectedComparison | CorrectedScore]]:
    from kantan_agents.lab.evaluation import corrected_compare, corrected_score

    sides = [evaluation[variant] for variant in evaluation.variants]
    if len(sides) == _TWO:
        a, b = sides
        yield lambda: corrected_compare(a, b, metric, people=people, by=by)
        return
    for side in sides:
        yield lambda side=side: corrected_score(side, metric, people=people, by=by)  # type: ignore[misc]


def _corrected(make: Callable[[], CorrectedComparison | CorrectedScore]) -> dict[str, Any]:
    """Return metrics, or why the labels do not allow them."""
    try:
        return make().to_dict()
    except (NotComparableError, UnusableLabelsError) as error:
        return {"text": f"as people judge it: cannot tell, {error.reason}", "reason": error.reason}
