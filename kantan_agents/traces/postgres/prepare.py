"""Creates the tables of a trace database in Postgres."""

from __future__ import annotations

from typing import Final

from kantan_agents.traces.database_url import PostgresUrl
from kantan_agents.traces.postgres.connection import connect
from kantan_agents.traces.postgres.schema import migrate

_WAIT_SECONDS: Final = 30.0


def make_server_tables(url: PostgresUrl, *, adopt: bool = False, search_index: bool = True) -> None:
    """Create the tables, if they are missing.

    Args:
        url: The database.
        adopt: Whether its schema may have tables of another program too.
        search_index: Whether new tables get an index for searches.

    Raises:
        PostgresMissingError: E140, the driver is not installed.
        sqlite3.Error: The server cannot be reached or refuses, or the tables are those of another program.
    """
    connection = connect(url, wait=_WAIT_SECONDS)
    try:
        migrate(connection, adopt=adopt, search_index=search_index)
    finally:
        connection.close()
