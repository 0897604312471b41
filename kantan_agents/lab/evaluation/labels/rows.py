"""Reads and writes human labels in the table of scores."""

from __future__ import annotations

import sqlite3
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

import attrs

from kantan_agents.lab.evaluation.experiment.rows import EvaluationRow, ResultKey
from kantan_agents.lab.evaluation.experiment.tables import CASES, REPLACE_SCORE, RESULTS, SCORES
from kantan_agents.lab.evaluation.labels.label import Label
from kantan_agents.lab.experiment.database import intact
from kantan_agents.traces.store.connection import changing, reading, transaction

_KEY: Final = "c.case_id, c.case_hash, r.variant_hash, r.repeat"


@attrs.frozen
class ResultRow:
    """A finished result, without its content. SQLite may reuse the number of a deleted row."""

    number: int
    key: ResultKey
    trace_id: str | None


@attrs.frozen
class LabelRow:
    """A stored label, without its result; ``created_at`` is ISO 8601 in UTC."""

    metric: str
    by: str
    value: float
    label: str | None
    comment: str | None
    probability: float | None
    created_at: str = attrs.field(
        factory=lambda: datetime.now(timezone.utc).isoformat(timespec="microseconds")
    )


@attrs.frozen
class MetricRow:
    """A metric of results; ``people`` is the number of its reviewers."""

    metric: str
    is_judged: bool
    people: int
    is_binary: bool


def read_finished(path: Path, evaluation: EvaluationRow) -> list[ResultRow]:
    """Return the finished results of the current cases and variants."""
    body = evaluation.body
    cases = {tuple(case) for case in body["cases"]}
    variants = {one["hash"] for one in body["variants"].values()}
    query = f"""SELECT r.id, r.trace_id, {_KEY} FROM {RESULTS} r JOIN {CASES} c ON c.id = r.case_row
    WHERE r.evaluation = ? AND r.status = 'finished'"""  # noqa: S608
    with reading(path, by_trace=False, with_views=False) as connection:
        found = connection.execute(query, (evaluation.id,))
        rows = [ResultRow(number, (*key,), trace_id) for number, trace_id, *key in found]
    return [
        row
        for row in rows
        if row.key[:2] in cases and row.key[2] in variants and row.key[3] < int(body["repeats"])
    ]


def read_labels(path: Path, evaluation: EvaluationRow, metric: str | None = None) -> list[Label]:
    """Return the labels of the current results, unordered."""
    names = {one["hash"]: name for name, one in evaluation.body["variants"].items()}
    query = f"""SELECT {_KEY}, s.metric, s.rater, s.value, s.label, s.comment, s.probability, s.created_at
    FROM {SCORES} s JOIN {RESULTS} r ON r.id = s.result JOIN {CASES} c ON c.id = r.case_row
    WHERE r.evaluation = ? AND s.rater != '' AND s.value IS NOT NULL AND (? IS NULL OR s.metric = ?)"""  # noqa: S608
    with reading(path, by_trace=False, with_views=False) as connection, intact(path, "a label or score"):
        found = connection.execute(query, (evaluation.id, metric, metric))
        return [_label(row, names[row["variant_hash"]]) for row in found if row["variant_hash"] in names]


def read_labelled(path: Path, evaluation: EvaluationRow, metric: str, by: str) -> frozenset[int]:
    """Return the rows that a reviewer has labeled."""
    query = f"""SELECT s.result FROM {SCORES} s JOIN {RESULTS} r ON r.id = s.result
    WHERE r.evaluation = ? AND s.metric = ? AND s.rater = ? AND s.probability IS NOT NULL"""  # noqa: S608
    with reading(path, by_trace=False, with_views=False) as connection:
        return frozenset(row[0] for row in connection.execute(query, (evaluation.id, metric, by)))


def read_score_times(path: Path, evaluation: EvaluationRow, metric: str) -> dict[ResultKey, datetime]:
    """Return the times of the evaluators' scores."""
    query = f"""SELECT {_KEY}, s.created_at FROM {SCORES} s JOIN {RESULTS} r ON r.id = s.result
    JOIN {CASES} c ON c.id = r.case_row WHERE r.evaluation = ? AND s.metric = ? AND s.rater = ''"""  # noqa: S608
    with reading(path, by_trace=False, with_views=False) as connection, intact(path, "a label or score"):
        found = connection.execute(query, (evaluation.id, metric))
        return {(row[0], row[1], row[2], row[3]): datetime.fromisoformat(row[4]) for row in found}


def read_metrics(path: Path, evaluation: EvaluationRow) -> list[MetricRow]:
    """Return the metrics of the finished results, the evaluators' first, alphabetically."""
    query = f"""SELECT s.metric, MAX(CASE WHEN s.rater = '' THEN 1 ELSE 0 END) AS is_judged, COUNT(DISTINCT
    NULLIF(s.rater, '')) AS people, MIN(CASE WHEN s.value IN (0, 1) THEN 1 WHEN s.value IS NOT NULL THEN 0
    END) AS is_binary FROM {SCORES} s JOIN {RESULTS} r ON r.id = s.result WHERE r.evaluation = ? AND r.status
    = 'finished' AND s.metric NOT LIKE ' %'
    GROUP BY s.metric ORDER BY is_judged DESC, s.metric"""  # noqa: S608
    with reading(path, by_trace=False, with_views=False) as connection:
        found = connection.execute(query, (evaluation.id,))
        return [
            MetricRow(metric, bool(judged), people, bool(binary)) for metric, judged, people, binary in found
        ]


def read_pairs(path: Path, evaluation: EvaluationRow, metric: str, by: str) -> dict[int, tuple[float, float]]:
    """Return values of a reviewer and an evaluator by row."""
    versions = {name: one["version"] for name, one in evaluation.body["evaluators"].items()}
    query = f"""SELECT s.result, s.value, j.value, j.evaluator, j.version FROM {SCORES} s
    JOIN {SCORES} j ON j.result = s.result AND j.metric = s.metric AND j.rater = ''
    JOIN {RESULTS} r ON r.id = s.result WHERE r.evaluation = ? AND s.metric = ? AND s.rater = ?
    AND s.probability IS NOT NULL AND s.value IS NOT NULL AND j.value IS NOT NULL"""  # noqa: S608
    with reading(path, by_trace=False, with_views=False) as connection:
        found = connection.execute(query, (evaluation.id, metric, by))
        return {
            number: (person, judge)
            for number, person, judge, evaluator, version in found
            if versions.get(evaluator) == version
        }


def write_label(
    path: Path, result: ResultRow, row: LabelRow, *, keep_given: bool = False
) -> tuple[bool, LabelRow | None]:
    """Store a label in place of an earlier one of the same reviewer; ``keep_given`` retains a queue's label.

    Return false if the result was deleted meanwhile, and the replaced or retained label.
    """
    with changing(path) as connection, transaction(connection):
        before = _stored(connection, result, row.metric, row.by)
        if keep_given and before is not None and before.probability is not None:
            return False, before
        return _write(connection, result, row), before


def take_label_back(path: Path, result: ResultRow, given: LabelRow, before: LabelRow | None) -> bool:
    """Delete a label or restore an earlier one; return whether it existed."""
    with changing(path) as connection, transaction(connection):
        if _stored(connection, result, given.metric, given.by) != given:
            return False
        if before is not None:
            return _write(connection, result, before)
        return _delete(connection, result, given.metric, given.by)


def delete_label(path: Path, result: ResultRow, metric: str, by: str) -> bool:
    """Delete a label; return whether it existed."""
    with changing(path) as connection, transaction(connection):
        if _stored(connection, result, metric, by) is None:
            return False
        return _delete(connection, result, metric, by)


def _write(connection: sqlite3.Connection, result: ResultRow, row: LabelRow) -> bool:
    statement = f"""INSERT INTO {SCORES}
    SELECT id, ?, ?, NULL, NULL, 'person', ?, ?, ?, NULL, ?, ? FROM {RESULTS}
    WHERE id = ? AND trace_id IS ? {REPLACE_SCORE}"""  # noqa: S608
    values = (*attrs.astuple(row), result.number, result.trace_id)
    return connection.execute(statement, values).rowcount == 1


def _delete(connection: sqlite3.Connection, result: ResultRow, metric: str, by: str) -> bool:
    statement = f"DELETE FROM {SCORES} WHERE result = ? AND metric = ? AND rater = ?"  # noqa: S608
    return connection.execute(statement, (result.number, metric, by)).rowcount == 1


def _label(row: sqlite3.Row, variant: str) -> Label:
    return Label(
        case_id=row["case_id"],
        case_hash=row["case_hash"],
        variant=variant,
        repeat=row["repeat"],
        metric=row["metric"],
        by=row["rater"],
        value=row["value"],
        label=row["label"],
        comment=row["comment"],
        probability=row["probability"],
        created_at=datetime.fromisoformat(row["created_at"]),
    )


def _stored(connection: sqlite3.Connection, result: ResultRow, metric: str, by: str) -> LabelRow | None:
    query = f"""SELECT s.metric, s.rater, s.value, s.label, s.comment, s.probability, s.created_at
    FROM {SCORES} s JOIN {RESULTS} r ON r.id = s.result
    WHERE r.id = ? AND r.trace_id IS ? AND s.metric = ? AND s.rater = ?"""  # noqa: S608
    found: Any = connection.execute(query, (result.number, result.trace_id, metric, by)).fetchone()
    return None if found is None else LabelRow(*found)
