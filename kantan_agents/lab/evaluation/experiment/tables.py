"""The tables of evaluations, next to the recorder's tables in the same file.

Deleting a trace deletes the result of its run. A case goes with its last result, an evaluation with its last
case.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from kantan_agents.traces.schema import count_existing

EVALUATIONS: Final = "kantan_agents_evaluations"
CASES: Final = "kantan_agents_evaluation_cases"
RESULTS: Final = "kantan_agents_evaluation_results"
"""One row for each run of a case. ``withheld``: its content is not stored. Numbers are not reused."""
SCORES: Final = "kantan_agents_scores"
"""One row for each result, metric and rater; the rater of an evaluator's score is ``''``.

Without value and error, the evaluator does not apply, and the metric is a space and its name.
"""
TABLES: Final = (EVALUATIONS, CASES, RESULTS, SCORES)

_STATEMENTS: Final = (
    (
        f"CREATE TABLE IF NOT EXISTS {EVALUATIONS}(id INTEGER PRIMARY KEY AUTOINCREMENT, "
        "name TEXT NOT NULL UNIQUE, created_at TEXT NOT NULL, body TEXT NOT NULL)"
    ),
    (
        f"CREATE TABLE IF NOT EXISTS {CASES}(id INTEGER PRIMARY KEY, evaluation INTEGER NOT NULL, "
        "case_id TEXT NOT NULL, case_hash TEXT NOT NULL, body TEXT NOT NULL, "
        "UNIQUE(evaluation, case_id, case_hash))"
    ),
    (
        f"CREATE TABLE IF NOT EXISTS {RESULTS}(id INTEGER PRIMARY KEY AUTOINCREMENT, "
        "evaluation INTEGER NOT NULL, case_row INTEGER NOT NULL, variant_hash TEXT NOT NULL, "
        "repeat INTEGER NOT NULL, status TEXT NOT NULL, trace_id TEXT, withheld INTEGER NOT NULL, "
        "body TEXT NOT NULL, UNIQUE(case_row, variant_hash, repeat))"
    ),
    f"CREATE INDEX IF NOT EXISTS kantan_agents_results_of_trace ON {RESULTS}(trace_id)",
    f"CREATE INDEX IF NOT EXISTS kantan_agents_results_of_evaluation ON {RESULTS}(evaluation)",
    (
        f"CREATE TABLE IF NOT EXISTS {SCORES}(result INTEGER NOT NULL, metric TEXT NOT NULL, "
        "rater TEXT NOT NULL, evaluator TEXT, version TEXT, source TEXT NOT NULL, value REAL, label TEXT, "
        "comment TEXT, error TEXT, probability REAL, created_at TEXT NOT NULL, "
        "PRIMARY KEY(result, metric, rater)) WITHOUT ROWID"
    ),
    (
        "CREATE TRIGGER IF NOT EXISTS kantan_agents_result_of_trace_deleted AFTER DELETE ON traces "  # noqa: S608
        f"BEGIN DELETE FROM {RESULTS} WHERE trace_id = OLD.id; END"
    ),
    (
        f"CREATE TRIGGER IF NOT EXISTS kantan_agents_result_deleted AFTER DELETE ON {RESULTS} "  # noqa: S608
        f"BEGIN DELETE FROM {SCORES} WHERE result = OLD.id; "
        f"DELETE FROM {CASES} WHERE id = OLD.case_row "
        f"AND NOT EXISTS (SELECT 1 FROM {RESULTS} r WHERE r.case_row = OLD.case_row); END"
    ),
    (
        f"CREATE TRIGGER IF NOT EXISTS kantan_agents_evaluation_emptied AFTER DELETE ON {CASES} "  # noqa: S608
        f"WHEN NOT EXISTS (SELECT 1 FROM {CASES} c WHERE c.evaluation = OLD.evaluation) "
        f"BEGIN DELETE FROM {EVALUATIONS} WHERE id = OLD.evaluation; END"
    ),
)


REPLACE_SCORE: Final = "ON CONFLICT(result, metric, rater) DO UPDATE SET " + ", ".join(
    f"{column} = excluded.{column}"
    for column in (
        "evaluator",
        "version",
        "source",
        "value",
        "label",
        "comment",
        "error",
        "probability",
        "created_at",
    )
)


def create_tables(connection: sqlite3.Connection) -> None:
    """Create missing tables; the caller controls the transaction."""
    for statement in _STATEMENTS:
        connection.execute(statement)


def has_tables(connection: sqlite3.Connection) -> bool:
    """Return whether the file has all tables of evaluations."""
    return count_existing(connection, TABLES) == len(TABLES)
