"""Scores and usage by variant."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.comparing.number_texts import score_text
from kantan_agents.lab.evaluation.comparing.paired_values import better_of
from kantan_agents.lab.evaluation.experiment.evaluation import Evaluation
from kantan_agents.lab.evaluation.experiment.results import VariantResults
from kantan_agents.lab.evaluation.experiment.spent import total
from kantan_agents.lab.experiment.prices import UsageMetrics

if TYPE_CHECKING:
    from kantan_agents.lab.evaluation.comparing.all_of_k import PassesAll


def variant_table(evaluation: Evaluation) -> tuple[list[str], list[list[str]]]:
    """Return the columns of the table and a row for each variant."""
    metrics = evaluation.metrics
    judges = {name: _judges(evaluation, name) for name in evaluation.variants}
    has_judges = any(one.tokens for one in judges.values())
    columns = ["variant", *metrics, "failed", "tokens", "cost", *(["judge tokens"] if has_judges else [])]
    rows = []
    for name in evaluation.variants:
        results = evaluation[name]
        costs = [one.cost for one in results.results]
        known = [cost for cost in costs if cost is not None]
        rows.append(
            [
                name,
                *(_mean(results, metric) for metric in metrics),
                f"{len(results.failed):,}",
                f"{sum(one.tokens for one in results.results):,}",
                f"{sum(known):.4g}" if known and len(known) == len(costs) else "",
                *([f"{judges[name].tokens:,}"] if has_judges else []),
            ]
        )
    return columns, rows


def passes_of(evaluation: Evaluation) -> list[PassesAll]:
    """Return how often all repeats of a case pass, by variant and metric."""
    if evaluation.repeats == 1:
        return []
    # Imported here: it needs numpy, and most evaluations have no repeats.
    from kantan_agents.lab.evaluation.comparing.all_of_k import passes_all

    found = []
    for name in evaluation.variants:
        results = evaluation[name]
        for metric in results.metrics:
            scores = [one.scores[metric].value for one in results.results if metric in one.scores]
            is_rate = all(value is None or 0 <= value <= 1 for value in scores)
            if is_rate and better_of(metric, results) == "higher":
                with suppress(InvalidOptionError):  # no case has as many runs with a score
                    found.append(passes_all(results, metric))
    return [one for one in found if one.k > 1]


def _judges(evaluation: Evaluation, variant: str) -> UsageMetrics:
    return total(one for name, one in evaluation.spent[variant].items() if name != "runs")


def _mean(results: VariantResults, metric: str) -> str:
    scores = ((one.case_id, one.scores.get(metric)) for one in results.results)
    cases = {case for case, score in scores if score is not None and score.value is not None}
    mean = results.mean(metric)
    return "-" if mean is None else f"{score_text(mean)} ({len(cases):,})"
