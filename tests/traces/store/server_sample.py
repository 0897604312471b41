"""The same sample database in Postgres: each row that kantan-llm's tracer writes is copied there at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kantan_agents.traces.copying.source import TracePage
from kantan_agents.traces.copying.target import open_target
from kantan_agents.traces.database_url import as_place
from kantan_agents.traces.schema import COLUMNS
from tests.traces.store.sample_database import SampleDatabase


class ServerSample(SampleDatabase):
    """A database in Postgres to write to."""

    def __init__(self, shadow: Path, url: str) -> None:
        super().__init__(shadow)
        self.path = as_place(url)
        self._opened = open_target(self.path, adopt=False)
        self._target = self._opened.__enter__()

    def trace(self, *args: Any, **more: Any) -> str:
        trace_id = super().trace(*args, **more)
        self._copy(trace_id, None)
        return trace_id

    def span(self, trace_id: str, *args: Any, **more: Any) -> str:
        span_id = super().span(trace_id, *args, **more)
        self._copy(trace_id, span_id)
        return span_id

    def _copy(self, trace_id: str, span_id: str | None) -> None:
        rows: dict[str, list[tuple[Any, ...]]] = {}
        for table, key in (("traces", trace_id), ("spans", span_id)):
            query = f"SELECT {', '.join(COLUMNS[table])} FROM {table} WHERE id = ?"
            rows[table] = [tuple(row) for row in self.tracer._conn.execute(query, (key,))]
        self._target.write(TracePage(rows["traces"], rows["spans"], []))

    def close(self) -> None:
        self.tracer.shutdown()
        self._opened.__exit__(None, None, None)


@contextmanager
def open_server_sample(shadow: Path, url: str) -> Iterator[ServerSample]:
    """Create a database, and close its connections at the end."""
    database = ServerSample(shadow, url)
    try:
        yield database
    finally:
        database.close()
