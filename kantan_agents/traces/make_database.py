"""``make_database``: creates the tables of a trace database, in a file or in Postgres."""

from __future__ import annotations

from pathlib import Path

from kantan_agents.traces.database_url import url_of, why_refused
from kantan_agents.traces.schema import make_tables


def make_database(path: Path, *, adopt: bool = False) -> None:
    """Create the tables at a path or a URL, if they are missing.

    Args:
        path: The file, or the database in Postgres.
        adopt: Whether to add the tables to the database of another program.

    Raises:
        PostgresMissingError: E140, the driver of Postgres is not installed.
        sqlite3.Error: The database cannot be used, or belongs to another program.
        OSError: The file cannot be created, or a link is in the place of the default one.
    """
    url = url_of(path)
    if url is None:
        refused = why_refused(path)
        if refused is not None:
            raise PermissionError(refused)
        make_tables(path, adopt=adopt)
        return
    # Imported late: a file needs none of it.
    from kantan_agents.traces.postgres.prepare import make_server_tables

    make_server_tables(url, adopt=adopt)
