"""Writes the rows of evaluations."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

import attrs

from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.evaluation.dataset.case import Case
from kantan_agents.lab.evaluation.experiment.results import CaseResult
from kantan_agents.lab.evaluation.experiment.rows import EvaluationRow, RatedScore, row_of
from kantan_agents.lab.evaluation.experiment.tables import (
    CASES,
    EVALUATIONS,
    REPLACE_SCORE,
    RESULTS,
    SCORES,
    create_tables,
)
from kantan_agents.lab.evaluation.scores import Score
from kantan_agents.support.secrets import mask
from kantan_agents.traces.capture.canonical import decode
from kantan_agents.traces.recorder.masking import mask_data
from kantan_agents.traces.recorder.plain_json import encode_anything
from kantan_agents.traces.store.connection import changing, transaction
from kantan_agents.traces.tables import storable_text

# A damaged row may be replaced as well.
_FIRST_TRACE: Final = "CASE WHEN json_valid(body) THEN json_extract(body, '$.first_trace_id') END"


def open_evaluation(path: Path, name: str, body: Mapping[str, Any]) -> EvaluationRow:
    """Return the evaluation with this name, created if it is missing.

    Variants and evaluators of earlier starts stay, unless ``body`` redefines them.
    """
    now = datetime.now(timezone.utc).isoformat(timespec="microseconds")
    query = f"SELECT * FROM {EVALUATIONS} WHERE name = ?"  # noqa: S608
    with changing(path) as connection, transaction(connection):
        create_tables(connection)
        known = connection.execute(query, (name,)).fetchone()
        if known is None:
            statement = f"INSERT INTO {EVALUATIONS}(name, created_at, body) VALUES (?, ?, ?)"  # noqa: S608
            connection.execute(statement, (name, now, encode_anything(body)))
        else:
            merged = _merged(name, row_of(path, known).body, body)
            update = f"UPDATE {EVALUATIONS} SET body = ? WHERE name = ?"  # noqa: S608
            connection.execute(update, (encode_anything(merged), name))
        return row_of(path, connection.execute(query, (name,)).fetchone())


def _merged(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    datasets = [one["dataset"]["name"] for one in (old, new)]
    if datasets[0] != datasets[1]:
        reason = (
            f"{name!r} is an evaluation of the dataset {datasets[0]!r}, not of {datasets[1]!r}; give another"
        )
        raise InvalidOptionError(option="name", reason=reason)
    known, wanted = ({case_id for case_id, _ in one["cases"]} for one in (old, new))
    grown = old.get("grown", False) or bool(known & wanted and wanted - known)
    merged = {key: {**old[key], **new[key]} for key in ("variants", "evaluators")}
    return {**new, **merged, **({"grown": True} if grown else {})}


def write_result(
    connection: sqlite3.Connection,
    evaluation: EvaluationRow,
    case: Case,
    variant_hash: str,
    result: CaseResult,
    *,
    replaces: bool = False,
) -> int | None:
    """Store the result of a run, with secrets masked; return the number of its row.

    The finished result of another process stays, unless ``replaces``: then the number is None.
    """
    evaluation_id = _id_of(connection, evaluation)
    key = (evaluation_id, case.id, case.hash)
    query = f"SELECT id FROM {CASES} WHERE evaluation = ? AND case_id = ? AND case_hash = ?"  # noqa: S608
    known = connection.execute(query, key).fetchone()
    if known is None:
        statement = f"INSERT INTO {CASES}(evaluation, case_id, case_hash, body) VALUES (?, ?, ?, ?)"  # noqa: S608
        body = _encoded(_stored_case(case, is_withheld=result.is_withheld))
        case_row = connection.execute(statement, (*key, body)).lastrowid
    else:
        case_row = known[0]
    same = (case_row, variant_hash, result.repeat)
    stored = _encoded(result.stored())
    values = (result.status, result.trace_id, result.is_withheld, stored)
    written = connection.execute(
        f"INSERT OR IGNORE INTO {RESULTS}(evaluation, case_row, variant_hash, repeat, "  # noqa: S608
        "status, trace_id, withheld, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (evaluation_id, *same, *values),
    )
    if written.rowcount and written.lastrowid:
        return written.lastrowid
    # An earlier attempt has failed, or another process was faster.
    query = (
        f"SELECT id, status, COALESCE({_FIRST_TRACE}, trace_id) FROM {RESULTS} "  # noqa: S608
        "WHERE case_row = ? AND variant_hash = ? AND repeat = ?"
    )
    number, status, first_trace_id = connection.execute(query, same).fetchone()
    if status == "finished" and not replaces:
        return None
    stored = _encoded({**result.stored(), "first_trace_id": first_trace_id})
    connection.execute(f"DELETE FROM {SCORES} WHERE result = ?", (number,))  # noqa: S608
    update = f"UPDATE {RESULTS} SET status = ?, trace_id = ?, withheld = ?, body = ? WHERE id = ?"  # noqa: S608
    connection.execute(update, (*values[:3], stored, number))
    return int(number)


def _encoded(value: Any) -> str:
    # One string with half a character must not stop the whole evaluation.
    return storable_text(encode_anything(value))


def _id_of(connection: sqlite3.Connection, evaluation: EvaluationRow) -> int:
    """Restore the evaluation if it was deleted with its last result."""
    query = f"SELECT id FROM {EVALUATIONS} WHERE name = ?"  # noqa: S608
    known = connection.execute(query, (evaluation.name,)).fetchone()
    if known is not None:
        return int(known[0])
    created_at = evaluation.created_at.isoformat(timespec="microseconds")
    statement = f"INSERT INTO {EVALUATIONS}(id, name, created_at, body) VALUES (?, ?, ?, ?)"  # noqa: S608
    connection.execute(
        statement, (evaluation.id, evaluation.name, created_at, encode_anything(evaluation.body))
    )
    return evaluation.id


def _stored_case(case: Case, *, is_withheld: bool) -> Any:
    if is_withheld:
        case = Case("", case.id, conversation=case.conversation)
    data = attrs.asdict(case)
    if not case.earlier:
        del data["earlier"]  # unknown to earlier versions
    return mask_data(decode(encode_anything(data)), mask)


def write_scores(
    connection: sqlite3.Connection,
    result: int,
    scores: Sequence[RatedScore],
    *,
    trace_id: str | None = None,
    replaces: bool = True,
) -> None:
    """Store scores in place of earlier ones of the same metrics and raters, with secrets masked.

    Nothing is stored if another run has replaced the result meanwhile. With ``replaces``, scores of an
    evaluator's earlier version are deleted, even of metrics that it no longer gives.
    """
    query = f"SELECT 1 FROM {RESULTS} WHERE id = ? AND trace_id IS ?"  # noqa: S608
    if connection.execute(query, (result, trace_id)).fetchone() is None:
        return
    now = datetime.now(timezone.utc).isoformat(timespec="microseconds")
    for evaluator in {one.evaluator for one in scores if one.evaluator is not None} if replaces else ():
        connection.execute(
            f"DELETE FROM {SCORES} WHERE result = ? AND evaluator = ? AND rater = ''",  # noqa: S608
            (result, evaluator),
        )
    connection.executemany(
        f"INSERT INTO {SCORES} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) {REPLACE_SCORE}",  # noqa: S608
        [
            (
                result,
                one.metric,
                one.rater,
                one.evaluator,
                one.version,
                *(("code", None, None, None, None) if one.score is None else _values(one.score)),
                one.probability,
                now,
            )
            for one in scores
        ],
    )


def _values(score: Score) -> tuple[Any, ...]:
    texts = (None if text is None else mask(text) for text in (score.label, score.comment, score.error))
    return score.source, score.value, *texts
