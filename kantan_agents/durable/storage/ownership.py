"""Which engine a database of durable runs belongs to."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sqlalchemy import Connection

_FOUND: Final = "SELECT value FROM kantan_agents_durable_secrets WHERE name = 'engine'"


def belongs_to(connection: Connection, engine: str) -> str:
    """Return the engine that has the runs of a database; a database without runs belongs to the one given.

    For DBOS nothing is stored, as in earlier versions.
    """
    from sqlalchemy import text

    found = connection.exec_driver_sql(_FOUND).scalar()
    if found is None and engine != "dbos":
        used = "SELECT EXISTS (SELECT 1 FROM kantan_agents_durable_runs)"
        if not connection.exec_driver_sql(used).scalar():
            from kantan_agents.durable.storage.jobs import JOB_TABLES

            # With a number: one server may have the runs of many databases.
            found = f"{engine}/{secrets.token_hex(4)}"
            insert = "INSERT INTO kantan_agents_durable_secrets (name, value) VALUES ('engine', :value)"
            connection.execute(text(insert), {"value": found})
            for table in JOB_TABLES:
                connection.exec_driver_sql(table)
    return "dbos" if found is None else str(found).partition("/")[0]


def identity_of(connection: Connection) -> str:
    """Return that engine with the number of the database, if it has one; nothing is changed."""
    from sqlalchemy import inspect

    has_table = inspect(connection).has_table("kantan_agents_durable_secrets")
    found = connection.exec_driver_sql(_FOUND).scalar() if has_table else None
    return "dbos" if found is None else str(found)
