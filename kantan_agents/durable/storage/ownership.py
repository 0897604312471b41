"""The engine that owns a database, and tables for one without its own."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sqlalchemy import Connection

_TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS kantan_agents_durable_jobs (
        run_id TEXT PRIMARY KEY, application TEXT NOT NULL, queue TEXT, status TEXT NOT NULL,
        handing INTEGER NOT NULL, is_handed INTEGER NOT NULL, attempts INTEGER NOT NULL,
        executor TEXT, claim TEXT, priority INTEGER, dedup_key TEXT, start_at DOUBLE PRECISION,
        created_at DOUBLE PRECISION NOT NULL, updated_at DOUBLE PRECISION NOT NULL,
        checked_at DOUBLE PRECISION NOT NULL, stored TEXT NOT NULL, outcome TEXT, error TEXT)""",
    """CREATE INDEX IF NOT EXISTS kantan_agents_durable_jobs_by_status
        ON kantan_agents_durable_jobs (application, status, created_at)""",
    """CREATE UNIQUE INDEX IF NOT EXISTS kantan_agents_durable_jobs_by_key
        ON kantan_agents_durable_jobs (application, dedup_key)
        WHERE dedup_key IS NOT NULL AND status IN ('queued', 'running')""",
    """CREATE TABLE IF NOT EXISTS kantan_agents_durable_schedules (
        application TEXT NOT NULL, name TEXT NOT NULL, cron TEXT NOT NULL, timezone TEXT,
        queue TEXT NOT NULL, stored TEXT NOT NULL, next_at DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (application, name))""",
)

_OF_DBOS: Final = ("workflow_status", "workflow_schedules", "queues")

_FOUND: Final = "SELECT value FROM kantan_agents_durable_secrets WHERE name = 'engine'"


def belongs_to(connection: Connection, engine: str) -> str:
    """Return the engine that owns a database; without runs, ``engine`` gets it.

    For DBOS nothing is stored, as in earlier versions.
    """
    from sqlalchemy import inspect, text

    found = connection.exec_driver_sql(_FOUND).scalar()
    if found is None and engine != "dbos":
        # Waiting runs of DBOS are in its own tables, and a started process has queues there.
        schema = None if connection.dialect.name == "sqlite" else "dbos"
        has = inspect(connection).has_table
        names = [f"{schema}.{one}" if schema else one for one in _OF_DBOS if has(one, schema)]
        used = [f"SELECT EXISTS (SELECT 1 FROM {one})" for one in ("kantan_agents_durable_runs", *names)]
        if not any(connection.exec_driver_sql(one).scalar() for one in used):
            # With a number: one server may have the runs of many databases.
            found = f"{engine}/{secrets.token_hex(4)}"
            # Another process may do the same now: in SQLite, reading does not block writing.
            insert = (
                "INSERT INTO kantan_agents_durable_secrets (name, value) VALUES ('engine', :value) "
                "ON CONFLICT (name) DO NOTHING"
            )
            connection.execute(text(insert), {"value": found})
            for table in _TABLES:
                connection.exec_driver_sql(table)
    return "dbos" if found is None else str(found).partition("/")[0]


def identity_of(connection: Connection) -> str:
    """Return the engine with its number, if any; change nothing."""
    from sqlalchemy import inspect

    has_table = inspect(connection).has_table("kantan_agents_durable_secrets")
    found = connection.exec_driver_sql(_FOUND).scalar() if has_table else None
    return "dbos" if found is None else str(found)
