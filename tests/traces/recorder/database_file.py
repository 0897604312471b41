"""Reads a database file with plain SQLite and with kantan-llm's unmodified tracer."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
from kantan_llm.tracing import SQLiteTracer
from kantan_llm.tracing.search import SpanQuery, SpanRecord, TraceQuery, TraceRecord


@attrs.frozen
class DatabaseFile:
    """The current content of the file at ``path``."""

    path: Path

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of an SQL query."""
        with closing(sqlite3.connect(str(self.path))) as connection:
            return connection.execute(query, values).fetchall()

    def names(self) -> list[str]:
        """Return the names of the spans, in the order in which they were written."""
        return [name for (name,) in self.rows("SELECT name FROM spans ORDER BY rowid")]

    def count(self) -> int:
        """Return the number of spans."""
        return int(self.rows("SELECT COUNT(*) FROM spans")[0][0])

    def is_sound(self) -> bool:
        """Return whether SQLite finds no errors in the file."""
        return self.rows("PRAGMA integrity_check") == [("ok",)]

    def traces(self, **query: Any) -> list[TraceRecord]:
        """Search traces with kantan-llm."""
        return self._search(lambda tracer: tracer.search_traces(query=TraceQuery(**query)))

    def spans(self, **query: Any) -> list[SpanRecord]:
        """Search spans with kantan-llm."""
        return self._search(lambda tracer: tracer.search_spans(query=SpanQuery(**query)))

    def bytes(self) -> bytes:
        """Return everything that is on disk for this database, including its logs."""
        files = [
            self.path,
            *(self.path.with_name(self.path.name + suffix) for suffix in ("-wal", "-journal")),
        ]
        return b"".join(file.read_bytes() for file in files if file.exists())

    def _search(self, search: Callable[[SQLiteTracer], list[Any]]) -> list[Any]:
        tracer = SQLiteTracer(str(self.path))
        try:
            return search(tracer)
        finally:
            tracer.shutdown()
