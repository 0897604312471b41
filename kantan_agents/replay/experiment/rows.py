"""Keeps experiments in the trace database, in two tables beside those of the recorder."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

import attrs

from kantan_agents.errors import TraceDatabaseError
from kantan_agents.replay.experiment.outcome import RunOutcome
from kantan_agents.tracing.recorder.plain_json import encode_anything
from kantan_agents.tracing.store.connection import changing, reading

EXPERIMENTS: Final = "kantan_agents_experiments"
"""One row for each name and hash of an experiment."""
EXPERIMENT_RUNS: Final = "kantan_agents_experiment_runs"
"""One row for each finished run; it is deleted together with the trace that it repeats."""

_STATEMENTS: Final = (
    (
        f"CREATE TABLE IF NOT EXISTS {EXPERIMENTS}(id INTEGER PRIMARY KEY, name TEXT NOT NULL, "
        "hash TEXT NOT NULL, created_at TEXT NOT NULL, body TEXT NOT NULL, UNIQUE(name, hash))"
    ),
    (
        f"CREATE TABLE IF NOT EXISTS {EXPERIMENT_RUNS}(id INTEGER PRIMARY KEY, "
        "experiment_id INTEGER NOT NULL, trace_id TEXT NOT NULL, run_id TEXT NOT NULL, "
        "repeat INTEGER NOT NULL, status TEXT NOT NULL, replayed_trace_id TEXT, body TEXT NOT NULL, "
        "UNIQUE(experiment_id, trace_id, run_id, repeat))"
    ),
    f"CREATE INDEX IF NOT EXISTS kantan_agents_experiment_runs_of_trace ON {EXPERIMENT_RUNS}(trace_id)",
    (
        "CREATE TRIGGER IF NOT EXISTS kantan_agents_experiment_run_of_trace_deleted "  # noqa: S608
        f"AFTER DELETE ON traces BEGIN DELETE FROM {EXPERIMENT_RUNS} WHERE trace_id = OLD.id; END"
    ),
)


@attrs.frozen
class ExperimentRow:
    """An experiment as it is stored.

    Attributes:
        id: Its number in the file.
        name: Its name.
        hash: What identifies its changes.
        created_at: When it was first started, in UTC.
        body: Its agent, its changes, and what was asked for.
    """

    id: int
    name: str
    hash: str
    created_at: datetime
    body: Mapping[str, Any]


def open_experiment(path: Path, name: str, hash_: str, body: Mapping[str, Any]) -> ExperimentRow:
    """Return the experiment with this name and hash; create it and the tables if they are missing.

    Raises:
        TraceDatabaseError: E60, the file cannot be changed.
    """
    now = datetime.now(timezone.utc).isoformat(timespec="microseconds")
    with changing(path) as connection:

        def write() -> None:
            for statement in _STATEMENTS:
                connection.execute(statement)
            connection.execute(
                f"INSERT OR IGNORE INTO {EXPERIMENTS}(name, hash, created_at, body) VALUES (?, ?, ?, ?)",  # noqa: S608
                (name, hash_, now, encode_anything(body)),
            )

        _transaction(connection, write)
        query = f"SELECT * FROM {EXPERIMENTS} WHERE name = ? AND hash = ?"  # noqa: S608
        return _row(connection.execute(query, (name, hash_)).fetchone())


def write_run(path: Path, experiment: ExperimentRow, outcome: RunOutcome) -> None:
    """Store a finished run, in place of an earlier attempt.

    Raises:
        TraceDatabaseError: E60, the file cannot be changed.
    """
    values = (
        experiment.id,
        outcome.trace_id,
        outcome.run_id,
        outcome.repeat,
        outcome.status,
        outcome.replayed_trace_id,
        encode_anything(outcome.to_dict()),
    )
    with changing(path) as connection:
        columns = "experiment_id, trace_id, run_id, repeat, status, replayed_trace_id, body"
        statement = (
            f"INSERT OR REPLACE INTO {EXPERIMENT_RUNS}({columns}) "  # noqa: S608
            # The trace may have been pruned meanwhile, and then its row would stay for ever.
            "SELECT ?, ?, ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM traces WHERE id = ?)"
        )
        _transaction(connection, lambda: connection.execute(statement, (*values, outcome.trace_id)))


def read_experiments(path: Path, name: str | None = None) -> list[ExperimentRow]:
    """Return the stored experiments, the newest first.

    Raises:
        TraceDatabaseError: E60, the file cannot be read.
    """
    with reading(path, by_trace=False) as connection:
        if not _has_tables(connection):
            return []
        query = f"SELECT * FROM {EXPERIMENTS} WHERE ? IS NULL OR name = ? ORDER BY id DESC"  # noqa: S608
        return [_row(row) for row in connection.execute(query, (name, name))]


def read_runs(path: Path, experiment: ExperimentRow) -> Sequence[RunOutcome]:
    """Return the stored runs of an experiment, in the order in which they ended.

    Raises:
        TraceDatabaseError: E60, the file cannot be read, or a row is damaged.
    """
    with reading(path, by_trace=False) as connection:
        query = f"SELECT body FROM {EXPERIMENT_RUNS} WHERE experiment_id = ? ORDER BY id"  # noqa: S608
        bodies = [row["body"] for row in connection.execute(query, (experiment.id,))]
    try:
        return [RunOutcome.from_dict(json.loads(body)) for body in bodies]
    except (KeyError, TypeError, ValueError) as error:
        reason = f"a run of the experiment {experiment.name!r} is damaged: {error}"
        raise TraceDatabaseError(path=str(path), reason=reason) from error


def _has_tables(connection: sqlite3.Connection) -> bool:
    query = "SELECT COUNT(*) FROM main.sqlite_master WHERE type = 'table' AND name IN (?, ?)"
    return bool(connection.execute(query, (EXPERIMENTS, EXPERIMENT_RUNS)).fetchone()[0] == 2)  # noqa: PLR2004


def _row(row: sqlite3.Row) -> ExperimentRow:
    created_at = datetime.fromisoformat(row["created_at"])
    return ExperimentRow(row["id"], row["name"], row["hash"], created_at, json.loads(row["body"]))


def _transaction(connection: sqlite3.Connection, work: Callable[[], object]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        work()
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
