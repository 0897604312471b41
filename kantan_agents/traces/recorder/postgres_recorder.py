"""``PostgresRecorder``: a trace processor that writes to Postgres without delaying the run."""

from __future__ import annotations

import os
from typing import Any, Final, cast

from kantan_agents.traces.database_url import PostgresUrl, as_url
from kantan_agents.traces.postgres.connection import driver
from kantan_agents.traces.recorder.database import Database
from kantan_agents.traces.recorder.recorder import SQLiteRecorder
from kantan_agents.traces.recorder.server_database import ServerDatabase

MAX_QUEUE: Final = 100_000
"""Spans that wait while the server is away: those of a minute with 1,600 spans a second."""


class PostgresRecorder(SQLiteRecorder):
    """Records traces in a database in Postgres without blocking the event loop.

    It has the methods, the options and the promises of ``SQLiteRecorder``. The recorder's own thread sends
    many spans at once. While the server cannot be reached, they wait in memory, and are written when it is
    back; if more come than may wait, the oldest are dropped, counted and logged. Several services may write
    to one database, and start at the same time.

    Args:
        path: The URL of the database, such as ``postgresql://user@host/traces``. Its tables are
            created in the first schema of the user's ``search_path``. The password is in no log line, error
            or ``repr``; better leave it out of the URL, and use ``PGPASSWORD`` or a password file.
        max_queue: As for ``SQLiteRecorder``, with a larger default for the time that a server is away.
        **options: As for ``SQLiteRecorder``. ``adopt`` is about a schema that has tables of another program.
            ``search_index`` creates an index with the extension ``pg_trgm`` for new tables; without the
            extension, searches read all texts, and a warning is logged once.

    Raises:
        PostgresMissingError: E140, the driver is not installed.
        InvalidOptionError: E75, an option is invalid.
    """

    def __init__(self, path: str, *, max_queue: int = MAX_QUEUE, **options: Any) -> None:
        super().__init__(path, max_queue=max_queue, **options)

    def _checked_place(self, path: str | os.PathLike[str]) -> PostgresUrl:
        driver()
        self._url = as_url(path)
        return self._url

    def _make_database(self) -> Database:
        return cast("Database", ServerDatabase(self._url, adopt=self._adopt, search_index=self._search_index))
