"""An implementation of kantan-llm's ``TraceSearchService`` that any thread can use."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timezone, tzinfo
from os import PathLike
from threading import Lock
from typing import Any

from kantan_llm.tracing import SpanQuery, SpanRecord, TraceQuery, TraceRecord, TraceSearchCapabilities
from typing_extensions import Self

from kantan_agents.traces.database_url import PostgresUrl, as_place, path_of
from kantan_agents.traces.registry import flush_recorders
from kantan_agents.traces.store.connection import check_path, reading, reading_again
from kantan_agents.traces.store.engine import engine_of
from kantan_agents.traces.store.kept_connections import KeptConnections
from kantan_agents.traces.store.records import IndexResult
from kantan_agents.traces.store.span_records import KantanSearch

# For all stores, which are copied and pickled.
_lock = Lock()


class SearchService:
    """kantan-llm's search over a trace database, and the index that makes searches for rare words fast.

    Each call opens the file again.
    """

    _kept: KeptConnections | None = None
    _entered = 0

    def __init__(self, path: str | PathLike[str] | PostgresUrl) -> None:
        self.path = path_of(as_place(path))
        self.default_tz: tzinfo = timezone.utc
        check_path(self.path)
        flush_recorders(self.path)  # a new recorder may still have to create the file
        # A killed writer's log stays: the file may be another program's.
        with reading(self.path, by_trace=False, keep_wal=True):
            pass

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_kept", "_entered")}

    def __enter__(self) -> Self:
        """Hold the file open until the end of the block, so that ``traces`` is several times as fast.

        Other methods open it again. While it is open, its write-ahead log exists next to it. A file that is
        moved to the path in the meantime is noticed; one that is overwritten is not. Has no effect for
        Postgres.
        """
        with _lock:
            self._entered += 1
            if self._kept is None:
                self._kept = KeptConnections(self.path)
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file, at the end of the outermost of several blocks."""
        with _lock:
            self._entered -= 1
            if self._entered:
                return
            kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()

    def search_traces(self, *, query: TraceQuery) -> list[TraceRecord]:
        """Search traces as kantan-llm does, by id descending; ``%`` and ``_`` in keywords are wildcards."""
        with self._searching() as search:
            return search.search_traces(query=query)

    def search_spans(self, *, query: SpanQuery) -> list[SpanRecord]:
        """Search spans as kantan-llm does; ``%`` and ``_`` in keywords are wildcards."""
        with self._searching(by_trace=False) as search:
            return search.search_spans(query=query)

    def get_trace(self, trace_id: str) -> TraceRecord | None:
        """Return kantan-llm's record of the trace with exactly this id; None if it does not exist."""
        with self._searching(by_trace=False) as search:
            return search.get_trace(trace_id)

    def get_span(self, span_id: str) -> SpanRecord | None:
        """Return kantan-llm's record of the span with this id; None if it does not exist."""
        with self._searching(by_trace=False) as search:
            return search.get_span(span_id)

    def get_spans_by_trace(self, trace_id: str) -> list[SpanRecord]:
        """Return kantan-llm's records of the spans of a trace, in the order in which they were stored."""
        with self._searching(by_trace=False) as search:
            return search.get_spans_by_trace(trace_id)

    def get_spans_since(self, trace_id: str, since_seq: int | None = None) -> list[SpanRecord]:
        """Return the spans of a trace whose ``ingest_seq`` is above ``since_seq``."""
        with self._searching(by_trace=False) as search:
            return search.get_spans_since(trace_id, since_seq)

    def capabilities(self) -> TraceSearchCapabilities:
        """Return the capabilities of kantan-llm's search over this database."""
        with self._searching(by_trace=False) as search:
            return search.capabilities()

    def build_index(self, *, progress: Callable[[int, int], None] | None = None) -> IndexResult:
        """Put all traces into the search index; create it if it is missing.

        A recorder does both for the files that it creates. Call this for a file of an earlier version or of
        kantan-llm's tracer. ``traces`` finds the same with and without the index.

        Traces are indexed in small transactions, so that other processes can write to the file. After an
        error or an interrupt, the next call continues.

        Args:
            progress: Called with the number of traces indexed so far, and of all traces to index.

        Raises:
            TraceDatabaseError: E60, the file cannot be read or changed, or SQLite lacks FTS5 or its trigrams.
            NotInPostgresError: E141, the database is in Postgres without its extension ``pg_trgm``.
        """
        flush_recorders(self.path)
        return engine_of(self.path).build_index(progress)

    def remove_index(self) -> IndexResult:
        """Remove the search index, and return its space to the disk if the file can shrink.

        A recorder does not create it again in a file that has traces.

        Raises:
            TraceDatabaseError: E60, the file cannot be read or changed.
        """
        flush_recorders(self.path)
        return engine_of(self.path).remove_index()

    @contextmanager
    def _searching(self, *, by_trace: bool = True) -> Iterator[KantanSearch]:
        with self._reading(by_trace=by_trace) as connection:
            yield KantanSearch(connection, self.default_tz)

    def _reading_again(self) -> AbstractContextManager[sqlite3.Connection]:
        """Open the database as ``_reading`` without views, or take a pooled connection."""
        kept = self._kept
        if kept is None:
            return self._reading(with_views=False)
        flush_recorders(self.path, kept.real_path)
        return reading_again(self.path, kept)

    @contextmanager
    def _reading(self, *, by_trace: bool = True, with_views: bool = True) -> Iterator[sqlite3.Connection]:
        flush_recorders(self.path)
        with reading(self.path, by_trace=by_trace, with_views=with_views) as connection:
            yield connection
