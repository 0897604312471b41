"""The search index in Postgres: trigrams of its extension ``pg_trgm``."""

from __future__ import annotations

from collections.abc import Callable

from kantan_agents.errors import NotInPostgresError
from kantan_agents.traces.database_url import Place
from kantan_agents.traces.postgres.connection import server_of
from kantan_agents.traces.postgres.partitions import bytes_of_tables
from kantan_agents.traces.postgres.schema import create_trigrams, drop_trigrams, has_trigrams
from kantan_agents.traces.postgres.server_error import ServerError
from kantan_agents.traces.store.connection import changing
from kantan_agents.traces.store.records import IndexResult


def build_server_index(
    path: Place,
    progress: Callable[[int, int], None] | None,  # noqa: ARG001 - the server does it in one step
) -> IndexResult:
    """Create the index if it is missing; raise E141 without its extension."""
    with changing(path, is_long=True) as connection:
        server = server_of(connection)
        before = bytes_of_tables(connection)
        if has_trigrams(server):
            return IndexResult(0, 0, before, before)
        try:
            create_trigrams(server)
        except ServerError as error:
            if error.sqlstate is None:
                raise
            reason = f"{error}; searches read all texts without it"
            raise NotInPostgresError(what="a search index", reason=reason) from error
        traces = int(connection.execute("SELECT COUNT(*) FROM traces").fetchone()[0])
        return IndexResult(traces, 0, before, bytes_of_tables(connection))


def remove_server_index(path: Place) -> IndexResult:
    """Remove the index, or raise E60."""
    with changing(path, is_long=True) as connection:
        server = server_of(connection)
        before = bytes_of_tables(connection)
        drop_trigrams(server)
        return IndexResult(0, 0, before, bytes_of_tables(connection))
