"""Evaluations, changed replays, and comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation import Comparison, Evaluation, MetricComparison, VariantResults, compare_all
from kantan_agents.lab.evaluation.comparing.number_texts import sentence
from kantan_agents.lab.evaluation.comparing.paired_values import CaseKey, paired_values, runs_of_cases
from kantan_agents.lab.evaluation.experiment.results import CaseResult
from kantan_agents.lab.replay import Experiment, RunOutcome
from kantan_agents.page.data.cut_texts import cut
from kantan_agents.page.data.label_choices import check_evaluation
from kantan_agents.traces.store import TraceStore

_MOST: Final = 100
_MOST_CASES: Final = 2_000
"""Those with the largest differences; the verdict is about all."""


def comparison_list(store: TraceStore) -> dict[str, Any]:
    """The latest evaluations and changed replays."""
    return {
        "evaluations": [_evaluation(one) for one in Evaluation.load_all(store)[:_MOST]],
        "experiments": [_experiment(one) for one in islice(Experiment.load_all(store), _MOST)],
    }


def compared_variants(store: TraceStore, name: str, a: str | None, b: str | None) -> dict[str, Any]:
    """Compare two variants, by default the first and the last one.

    Verdicts are adjusted for all variants that are compared with the first one, which ``all`` lists.
    """
    evaluation = Evaluation.load(store, name)
    check_evaluation(evaluation)
    variants = evaluation.variants
    chosen = a or variants[0], b or variants[-1]
    if chosen[0] == chosen[1]:
        raise InvalidOptionError(option="b", reason=f"must be another variant than {chosen[0]!r}")
    results = evaluation[chosen[0]], evaluation[chosen[1]]
    runs = runs_of_cases(results[0])
    # A variant without common cases would make the comparison fail.
    others = [
        evaluation[name]
        for name in variants
        if name == chosen[1]
        or (name != chosen[0] and not runs.keys().isdisjoint(runs_of_cases(evaluation[name])))
    ]
    together = compare_all(results[0], *others)
    comparison = together[chosen[1]]
    return {
        "name": evaluation.name,
        "variants": list(variants),
        "chosen": list(chosen),
        "cases": comparison.cases,
        "unpaired": len(comparison.unpaired),
        "failed": dict(comparison.failed),
        "metrics": _metrics(comparison, *results),
        "note": sentence(comparison.note if len(others) == 1 else together.note),
        "all": [_row(one) for one in together.metrics if one.is_notable] if len(others) > 1 else [],
    }


def changed_runs(store: TraceStore, name: str) -> dict[str, Any]:
    """Return the runs of a changed replay."""
    found = Experiment.load(store, name)
    return {**_experiment(found), "outcomes": [_outcome(run) for run in found.runs]}


def _evaluation(evaluation: Evaluation) -> dict[str, Any]:
    body = evaluation.row.body
    return {
        "name": evaluation.name,
        "created_at": evaluation.row.created_at.isoformat(),
        "dataset": str(body.get("dataset", {}).get("name", "")),
        "variants": [str(one) for one in body.get("variants", {})],
        "planned": body.get("planned"),
    }


def _experiment(experiment: Experiment) -> dict[str, Any]:
    return {
        "name": experiment.name,
        "created_at": experiment.created_at.isoformat(),
        "agent": experiment.agent,
        "changes": [cut(change) for change in experiment.changes],
        "runs": len(experiment.runs),
        "planned": experiment.planned,
        "counts": dict(experiment.counts),
    }


def _metrics(comparison: Comparison, a: VariantResults, b: VariantResults) -> list[dict[str, Any]]:
    runs = runs_of_cases(a), runs_of_cases(b)
    return [_metric(one, *runs) for one in comparison.metrics if one.is_notable]


def _metric(
    one: MetricComparison, a: Mapping[CaseKey, list[CaseResult]], b: Mapping[CaseKey, list[CaseResult]]
) -> dict[str, Any]:
    values = paired_values(one.metric, a, b, one.better)
    traces = [{key[0]: _trace(results) for key, results in side.items()} for side in (a, b)]
    order = sorted(range(len(values.cases)), key=lambda place: values.a[place] - values.b[place])
    drawn = [*order[: _MOST_CASES // 2], *order[_MOST_CASES // 2 :][-_MOST_CASES // 2 :]]
    return {
        "metric": one.metric,
        "verdict": one.verdict,
        "text": one.text,
        "better": one.better,
        "means": [one.mean_a, one.mean_b],
        "difference": one.difference,
        "low": one.low,
        "high": one.high,
        "p": one.p_adjusted,
        "wins": len(one.wins),
        "ties": len(one.ties),
        "losses": len(one.losses),
        "cases": [
            {
                "id": values.cases[place],
                "values": [float(values.a[place]), float(values.b[place])],
                "traces": [side[values.cases[place]] for side in traces],
            }
            for place in drawn
        ],
        "left_out": len(values.cases) - len(drawn),
    }


def _row(one: MetricComparison) -> dict[str, Any]:
    return {
        "variant": one.b,
        "metric": one.metric,
        "verdict": one.verdict,
        "difference": one.difference,
        "low": one.low,
        "high": one.high,
        "p": one.p_adjusted,
    }


def _trace(results: list[CaseResult]) -> str | None:
    return next((one.trace_id for one in results if one.trace_id is not None), None)


def _outcome(run: RunOutcome) -> dict[str, Any]:
    new = run.new_call
    decisions = "; ".join(f"{one.kind} {one.name}: {one.before} / {one.after}" for one in run.decisions)
    return {
        "status": run.status,
        "traces": [run.trace_id, run.replayed_trace_id],
        "why": cut(f"{new.tool}({new.arguments})" if new is not None else run.error or decisions),
        "tokens": [run.before.tokens, run.after.tokens],
        "outputs": [cut(run.output_before), cut(run.output_after)],
    }
