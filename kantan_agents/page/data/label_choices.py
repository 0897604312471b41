"""The metrics that can be labeled."""

from __future__ import annotations

from typing import Any, Final

from kantan_agents.errors import TraceDatabaseError
from kantan_agents.lab.evaluation import Evaluation
from kantan_agents.lab.evaluation.labels.rows import MetricRow, read_finished, read_labelled, read_metrics
from kantan_agents.traces.store import TraceStore

SCALES: Final = ("yesno", "0-1", "1-5", "1-10")
"""A request may name others."""
_MOST: Final = 100


def label_choices(store: TraceStore, by: str | None) -> dict[str, Any]:
    """The latest evaluations, with the number of results that wait for ``by``."""
    found = Evaluation.load_all(store)
    return {
        "evaluations": [_evaluation(one, by) for one in found[:_MOST]],
        "left_out": max(0, len(found) - _MOST),
        "scales": SCALES,
    }


def check_evaluation(evaluation: Evaluation) -> None:
    """E60 if the stored evaluation is damaged."""
    try:
        body = evaluation.row.body
        _ = (
            [one["version"] for one in body["evaluators"].values()],
            [evaluation.hash_of(name) for name in evaluation.variants],
            {tuple(case) for case in body["cases"]},
            (evaluation.repeats, evaluation.dataset),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        reason = f"the evaluation {evaluation.name!r} is damaged: {type(error).__name__} {error}"
        raise TraceDatabaseError(path=str(evaluation.path), reason=reason) from error


def _evaluation(evaluation: Evaluation, by: str | None) -> dict[str, Any]:
    try:
        check_evaluation(evaluation)
    except TraceDatabaseError as error:
        return {"name": evaluation.name, "problem": str(error), "metrics": []}
    finished = {row.number for row in read_finished(evaluation.path, evaluation.row)}
    return {
        "name": evaluation.name,
        "dataset": evaluation.dataset,
        "created_at": evaluation.row.created_at.isoformat(),
        "variants": len(evaluation.variants),
        "finished": len(finished),
        "metrics": [
            _metric(evaluation, row, finished, by) for row in read_metrics(evaluation.path, evaluation.row)
        ],
    }


def _metric(evaluation: Evaluation, row: MetricRow, finished: set[int], by: str | None) -> dict[str, Any]:
    waiting = None
    if by is not None:
        waiting = len(finished - read_labelled(evaluation.path, evaluation.row, row.metric, by))
    return {
        "name": row.metric,
        "judged": row.is_judged,
        "people": row.people,
        "scale": "yesno" if row.is_binary else "0-1",
        "waiting": waiting,
    }
