"""What evaluators and people say about the run of a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from kantan_agents.lab.evaluation.experiment.tables import EVALUATIONS, RESULTS, SCORES, has_tables
from kantan_agents.page.data.parts import cut
from kantan_agents.traces.store.connection import reading

_QUERY: Final = f"""SELECT e.name, s.metric, s.rater, s.source, s.value, s.label, s.comment, s.error
FROM {RESULTS} r JOIN {EVALUATIONS} e ON e.id = r.evaluation JOIN {SCORES} s ON s.result = r.id
WHERE r.trace_id = ? AND s.metric NOT LIKE ' %' ORDER BY e.id, s.metric, s.rater"""  # noqa: S608


def scores_of(path: Path, trace_id: str) -> list[dict[str, Any]]:
    """Return the scores of the results of evaluations whose run is in this trace.

    Raises:
        TraceDatabaseError: E60, the file cannot be read.
    """
    with reading(path, by_trace=False, with_views=False) as connection:
        if not has_tables(connection):
            return []
        return [_score(*row) for row in connection.execute(_QUERY, (trace_id,))]


def _score(
    evaluation: str, metric: str, rater: str, source: str, value: float | None, *texts: str | None
) -> dict[str, Any]:
    label, comment, error = texts
    return {
        "evaluation": evaluation,
        "metric": metric,
        "by": rater or source,
        "value": value,
        "label": cut(label),
        "comment": cut(comment),
        "error": cut(error),
    }
