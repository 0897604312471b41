"""Stores experiments in two tables of the trace database."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

import attrs

from kantan_agents.lab.experiment.database import intact
from kantan_agents.lab.replay.experiment.outcome import RunOutcome
from kantan_agents.traces.recorder.plain_json import encode_anything
from kantan_agents.traces.schema import count_existing
from kantan_agents.traces.store.connection import changing, reading, transaction

EXPERIMENTS: Final = "kantan_agents_experiments"
"""One row for each name and hash; deleted with the last of its runs."""
EXPERIMENT_RUNS: Final = "kantan_agents_experiment_runs"
"""One row for each finished run; deleted with the recorded trace."""
_TABLES: Final = (EXPERIMENTS, EXPERIMENT_RUNS)

_BODY: Final = ("agent", "changes", "planned", "skipped", "live", "simulate")
_OF_THIS: Final = f"experiment_id = (SELECT id FROM {EXPERIMENTS} WHERE name = ? AND hash = ?)"  # noqa: S608

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
    (
        "CREATE TRIGGER IF NOT EXISTS kantan_agents_experiment_emptied "  # noqa: S608
        f"AFTER DELETE ON {EXPERIMENT_RUNS} "
        f"WHEN NOT EXISTS (SELECT 1 FROM {EXPERIMENT_RUNS} WHERE experiment_id = OLD.experiment_id) "
        f"BEGIN DELETE FROM {EXPERIMENTS} WHERE id = OLD.experiment_id; END"
    ),
)
_CREATE_EXPERIMENT: Final = (
    f"INSERT OR IGNORE INTO {EXPERIMENTS}(name, hash, created_at, body) VALUES (?, ?, ?, ?)"  # noqa: S608
)


@attrs.frozen
class ExperimentRow:
    """A stored experiment; ``body`` has its agent, changes and options."""

    name: str
    hash: str
    created_at: datetime
    body: Mapping[str, Any]


def open_experiment(path: Path, name: str, hash_: str, body: Mapping[str, Any]) -> ExperimentRow:
    """Return an experiment; create it and the tables if missing."""
    new = ExperimentRow(name, hash_, datetime.now(timezone.utc), body)
    with changing(path) as connection:
        with transaction(connection):
            for statement in _STATEMENTS:
                connection.execute(statement)
            connection.execute(_CREATE_EXPERIMENT, _values(new))
            query = f"SELECT * FROM {EXPERIMENTS} WHERE name = ? AND hash = ?"  # noqa: S608
            row = connection.execute(query, (name, hash_)).fetchone()
        return _row(path, row)


def write_run(path: Path, experiment: ExperimentRow, outcome: RunOutcome) -> None:
    """Store a finished run, in place of an earlier attempt."""
    values = (
        outcome.trace_id,
        outcome.run_id,
        outcome.repeat,
        outcome.status,
        outcome.replayed_trace_id,
        encode_anything(outcome.to_dict()),
    )
    columns = "experiment_id, trace_id, run_id, repeat, status, replayed_trace_id, body"
    write = (
        f"INSERT INTO {EXPERIMENT_RUNS}({columns}) SELECT id, ?, ?, ?, ?, ?, ? "  # noqa: S608
        f"FROM {EXPERIMENTS} WHERE name = ? AND hash = ? "
        "ON CONFLICT(experiment_id, trace_id, run_id, repeat) DO UPDATE SET status = excluded.status, "
        "replayed_trace_id = excluded.replayed_trace_id, body = excluded.body"
    )
    with changing(path) as connection, transaction(connection):
        # The trace may have been pruned meanwhile; nothing would delete its row later.
        if connection.execute("SELECT 1 FROM traces WHERE id = ?", (outcome.trace_id,)).fetchone() is None:
            return
        # A prune may have deleted the experiment with its last row since the start.
        connection.execute(_CREATE_EXPERIMENT, _values(experiment))
        connection.execute(write, (*values, experiment.name, experiment.hash))


def read_experiments(path: Path, name: str | None = None) -> list[ExperimentRow]:
    """Return the stored experiments, latest first."""
    with reading(path, by_trace=False) as connection:
        if count_existing(connection, _TABLES) < len(_TABLES):
            return []
        query = f"SELECT * FROM {EXPERIMENTS} WHERE ? IS NULL OR name = ? ORDER BY id DESC"  # noqa: S608
        return [_row(path, row) for row in connection.execute(query, (name, name))]


def read_runs(path: Path, experiment: ExperimentRow) -> Sequence[RunOutcome]:
    """Return the stored runs of an experiment, first finished first."""
    with reading(path, by_trace=False) as connection:
        query = f"SELECT body FROM {EXPERIMENT_RUNS} WHERE {_OF_THIS} ORDER BY id"  # noqa: S608
        rows = connection.execute(query, (experiment.name, experiment.hash))
        bodies = [row["body"] for row in rows]
    with intact(path, f"a run of the experiment {experiment.name!r}"):
        return [RunOutcome.from_dict(json.loads(body)) for body in bodies]


def _values(row: ExperimentRow) -> tuple[str, ...]:
    created_at = row.created_at.isoformat(timespec="microseconds")
    return row.name, row.hash, created_at, encode_anything(row.body)


def _row(path: Path, row: sqlite3.Row) -> ExperimentRow:
    with intact(path, f"the experiment {row['name']!r}"):
        body = json.loads(row["body"])
        created_at = datetime.fromisoformat(row["created_at"])
        return ExperimentRow(row["name"], row["hash"], created_at, {key: body[key] for key in _BODY})
