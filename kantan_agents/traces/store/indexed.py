"""The methods of ``TraceStore`` for its search index."""

from __future__ import annotations

from collections.abc import Callable

from kantan_agents.traces.database_url import url_of
from kantan_agents.traces.registry import flush_recorders
from kantan_agents.traces.store.build_index import build, remove
from kantan_agents.traces.store.records import IndexResult
from kantan_agents.traces.store.service import SearchService


class IndexedService(SearchService):
    """A trace database with an index that makes searches for rare words fast."""

    def build_index(self, *, progress: Callable[[int, int], None] | None = None) -> IndexResult:
        """Put all traces into the search index, and make it if the file has none.

        A recorder does both for the files that it creates. Call this for a file of an earlier version or of
        kantan-llm's tracer. What ``traces`` finds is the same with the index and without it.

        Traces are indexed in small transactions, so that other processes can write to the file. If an error
        or an interrupt stops this method, the next call continues.

        Args:
            progress: Called with the number of traces indexed so far, and of all traces to index.

        Raises:
            TraceDatabaseError: E60, the file cannot be read or changed, or SQLite lacks FTS5 or its trigrams.
            NotInPostgresError: E141, the database is in Postgres, and its extension ``pg_trgm`` is missing.
        """
        flush_recorders(self.path)
        if url_of(self.path) is not None:
            from kantan_agents.traces.store.server_index import build_server_index

            return build_server_index(self.path)
        return build(self.path, progress)

    def remove_index(self) -> IndexResult:
        """Remove the search index, and give its space back to the disk if the file can shrink.

        A recorder makes no new one in a file that has traces.

        Raises:
            TraceDatabaseError: E60, the file cannot be read or changed.
        """
        flush_recorders(self.path)
        if url_of(self.path) is not None:
            from kantan_agents.traces.store.server_index import remove_server_index

            return remove_server_index(self.path)
        return remove(self.path)
