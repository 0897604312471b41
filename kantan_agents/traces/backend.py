"""``backend_of``: the only check whether a database is a file or in Postgres."""

from __future__ import annotations

from kantan_agents.traces.database_url import Place, PostgresUrl
from kantan_agents.traces.file_backend import FileBackend


def backend_of(place: Place) -> FileBackend:
    """Return the backend of a database."""
    if isinstance(place, PostgresUrl):
        # Imported late: a file needs none of it.
        from kantan_agents.traces.postgres.backend import PostgresBackend

        return PostgresBackend(place)
    return FileBackend(place)
