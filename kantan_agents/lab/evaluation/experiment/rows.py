"""Reads the rows of evaluations."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import attrs

from kantan_agents.lab.evaluation.dataset.case import Case
from kantan_agents.lab.evaluation.experiment.results import CaseResult
from kantan_agents.lab.evaluation.experiment.tables import (
    CASES,
    EVALUATIONS,
    RESULTS,
    SCORES,
    has_tables,
)
from kantan_agents.lab.evaluation.scores import Score
from kantan_agents.lab.experiment.database import intact
from kantan_agents.lab.experiment.on_scale import on_scale
from kantan_agents.traces.store.connection import reading

_NOT_APPLICABLE: Final = " "
"""Metric prefix of evaluators that do not apply."""

ResultKey = tuple[str, str, str, int]
"""Id and hash of the case, hash of the variant, number of the repetition."""


@attrs.frozen
class EvaluationRow:
    """A stored evaluation; ``body`` has its dataset, variants and evaluators."""

    id: int
    name: str
    created_at: datetime
    body: Mapping[str, Any]


@attrs.frozen
class RatedScore:
    """A score of an evaluator or a reviewer; None if the evaluator does not apply."""

    metric: str
    score: Score | None
    rater: str = ""
    evaluator: str | None = None
    version: str | None = None
    probability: float | None = None

    @classmethod
    def not_applicable(cls, evaluator: str, version: str) -> RatedScore:
        """Record that an evaluator does not apply."""
        return cls(_NOT_APPLICABLE + evaluator, None, "", evaluator, version)


@attrs.frozen
class Stored:
    """Row numbers of results; ``withheld`` ones cannot be scored."""

    rows: Mapping[ResultKey, int]
    withheld: set[int]
    scored: Mapping[tuple[str, str], set[int]]


def read_evaluations(path: Path, name: str | None = None) -> list[EvaluationRow]:
    """Return the stored evaluations, the latest first."""
    with reading(path, by_trace=False) as connection:
        if not has_tables(connection):
            return []
        query = f"SELECT * FROM {EVALUATIONS} WHERE ? IS NULL OR name = ? ORDER BY id DESC"  # noqa: S608
        return [row_of(path, row) for row in connection.execute(query, (name, name))]


def read_stored(
    path: Path, evaluation: EvaluationRow, scales: Mapping[tuple[str, str], tuple[float, float]]
) -> Stored:
    """Return the results; scores outside of the scale do not count."""
    with reading(path, by_trace=False, with_views=False) as connection:
        query = f"""SELECT c.case_id, c.case_hash, r.variant_hash, r.repeat, r.id, r.withheld
        FROM {RESULTS} r JOIN {CASES} c ON c.id = r.case_row
        WHERE r.evaluation = ? AND r.status = 'finished'"""  # noqa: S608
        rows: dict[ResultKey, int] = {}
        withheld: set[int] = set()
        for case_id, case_hash, variant, repeat, number, is_withheld in _plain(
            connection, query, evaluation.id
        ):
            rows[case_id, case_hash, variant, repeat] = number
            if is_withheld:
                withheld.add(number)
        query = f"""SELECT s.evaluator, s.version, s.result, s.value
        FROM {RESULTS} r JOIN {SCORES} s ON s.result = r.id
        WHERE r.evaluation = ? AND s.evaluator IS NOT NULL AND s.error IS NULL"""  # noqa: S608
        scored: dict[tuple[str, str], set[int]] = defaultdict(set)
        outside: dict[tuple[str, str], set[int]] = defaultdict(set)
        for evaluator, version, number, value in _plain(connection, query, evaluation.id):
            scale = scales.get((evaluator, version))
            is_outside = scale is not None and value is not None and on_scale(value, scale) is None
            (outside if is_outside else scored)[evaluator, version].add(number)
        for key, numbers in outside.items():
            scored[key] -= numbers
    return Stored(rows, withheld, scored)


def read_results(
    path: Path, evaluation: EvaluationRow, rows: Sequence[int] | None = None
) -> Iterator[tuple[int, str, CaseResult]]:
    """Yield stored results with the current evaluators' scores, row numbers and variant hashes."""
    with reading(path, by_trace=False, with_views=False) as connection:
        chosen = "" if rows is None else "AND r.id IN (SELECT value FROM json_each(:rows))"
        values = {"evaluation": evaluation.id, "rows": json.dumps(rows)}
        scores: dict[int, dict[str, Score]] = {}
        givers: dict[int, dict[str, tuple[str, str]]] = {}
        not_applicable: dict[int, tuple[str, ...]] = {}
        versions = {name: one["version"] for name, one in evaluation.body["evaluators"].items()}
        query = f"""SELECT s.result, s.metric, s.evaluator, s.version, s.value, s.label, s.comment, s.source,
        s.error FROM {RESULTS} r JOIN {SCORES} s ON s.result = r.id
        WHERE r.evaluation = :evaluation AND s.rater = '' {chosen}"""  # noqa: S608
        for result, metric, evaluator, version, *score in connection.execute(query, values):
            if versions.get(evaluator) != version:
                continue
            if metric.startswith(_NOT_APPLICABLE):
                not_applicable[result] = (*not_applicable.get(result, ()), evaluator)
            else:
                scores.setdefault(result, {})[metric] = Score(*score)
                givers.setdefault(result, {})[metric] = (evaluator, version)
        query = f"""SELECT r.id, r.variant_hash, r.body FROM {RESULTS} r
        WHERE r.evaluation = :evaluation {chosen} ORDER BY r.id"""  # noqa: S608
        for number, variant_hash, body in connection.execute(query, values):
            with intact(path, f"a result of the evaluation {evaluation.name!r}"):
                found = CaseResult.from_dict(json.loads(body), scores.get(number, {}))
                yield (
                    number,
                    variant_hash,
                    attrs.evolve(
                        found,
                        evaluators=givers.get(number, {}),
                        not_applicable=not_applicable.get(number, ()),
                    ),
                )


def read_cases(
    path: Path, evaluation: EvaluationRow, key: tuple[str, str] | None = None
) -> dict[tuple[str, str], Case]:
    """Return the cases with results, or only the one with ``key``."""
    with reading(path, by_trace=False, with_views=False) as connection:
        one = "" if key is None else "AND case_id = ? AND case_hash = ?"
        query = f"SELECT case_id, case_hash, body FROM {CASES} WHERE evaluation = ? {one} ORDER BY id"  # noqa: S608
        with intact(path, f"a case of the evaluation {evaluation.name!r}"):
            return {
                (case_id, case_hash): Case(**json.loads(body))
                for case_id, case_hash, body in connection.execute(query, (evaluation.id, *(key or ())))
            }


def _plain(connection: sqlite3.Connection, query: str, *values: Any) -> Iterator[tuple[Any, ...]]:
    cursor = connection.cursor()
    cursor.row_factory = None  # there may be very many rows
    yield from cursor.execute(query, values)


def row_of(path: Path, row: sqlite3.Row) -> EvaluationRow:
    """Return the evaluation in a row."""
    with intact(path, f"the evaluation {row['name']!r}"):
        created_at = datetime.fromisoformat(row["created_at"])
        return EvaluationRow(row["id"], row["name"], created_at, json.loads(row["body"]))
