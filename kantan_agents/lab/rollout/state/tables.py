"""The tables of rollouts in the trace database."""

from __future__ import annotations

import sqlite3
from typing import Final

from kantan_agents.traces.schema import count_existing

ROLLOUTS: Final = "kantan_agents_rollouts"
HISTORY: Final = "kantan_agents_rollout_history"
"""One row for each change of a rollout, with the evidence at that moment as JSON."""
RUN_SCORES: Final = "kantan_agents_run_scores"
"""Scores from the application. They are deleted with the trace."""
TABLES: Final = (ROLLOUTS, HISTORY, RUN_SCORES)

_STATEMENTS: Final = (
    (
        f"CREATE TABLE IF NOT EXISTS {ROLLOUTS}(name TEXT PRIMARY KEY, agent TEXT NOT NULL, "
        "plan TEXT NOT NULL, status TEXT NOT NULL, step INTEGER NOT NULL, share REAL NOT NULL, arm TEXT, "
        "revision INTEGER NOT NULL, created_at TEXT NOT NULL, checked_by TEXT, checked_at REAL)"
    ),
    (
        f"CREATE TABLE IF NOT EXISTS {HISTORY}(id INTEGER PRIMARY KEY AUTOINCREMENT, rollout TEXT NOT NULL, "
        "at TEXT NOT NULL, action TEXT NOT NULL, author TEXT NOT NULL, share REAL NOT NULL, arm TEXT, "
        "reason TEXT NOT NULL, evidence TEXT)"
    ),
    f"CREATE INDEX IF NOT EXISTS kantan_agents_history_of_rollout ON {HISTORY}(rollout, id)",
    (
        f"CREATE TABLE IF NOT EXISTS {RUN_SCORES}(id INTEGER PRIMARY KEY AUTOINCREMENT, "
        "trace_id TEXT NOT NULL, run_id TEXT NOT NULL, metric TEXT NOT NULL, value REAL NOT NULL, "
        "comment TEXT, created_at TEXT NOT NULL)"
    ),
    f"CREATE INDEX IF NOT EXISTS kantan_agents_scores_of_trace ON {RUN_SCORES}(trace_id)",
    (
        "CREATE TRIGGER IF NOT EXISTS kantan_agents_scores_of_trace_deleted AFTER DELETE ON traces "  # noqa: S608
        f"BEGIN DELETE FROM {RUN_SCORES} WHERE trace_id = OLD.id; END"
    ),
)


def create_tables(connection: sqlite3.Connection) -> None:
    """Create missing tables; the caller controls the transaction."""
    for statement in _STATEMENTS:
        connection.execute(statement)


def has_tables(connection: sqlite3.Connection) -> bool:
    """Return whether the file has all tables of rollouts."""
    return count_existing(connection, TABLES) == len(TABLES)
