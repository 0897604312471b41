"""Stores statistics and index entries for a limited time."""

from __future__ import annotations

from kantan_agents.support.log import get_logger
from kantan_agents.traces.database_url import Place
from kantan_agents.traces.recorder.database import Database

# Readers compute fewer in some hundredths of a second.
FIGURES_AT_ONCE = 500

# Fewer would cost more space and time in the index. A search reads them in some milliseconds.
INDEXED_AT_ONCE = 128

_SECONDS = 0.05

_log = get_logger("kantan_agents.tracing")


class FigureKeeper:
    """Stores the statistics of changed traces."""

    def __init__(self, path: Place) -> None:
        self._path = path

    def keep(self, database: Database) -> bool:
        """Store statistics; return whether more wait."""
        if database.changed_traces < FIGURES_AT_ONCE:
            return False
        # Imported late: few processes need it.
        from kantan_agents.traces.store.store_figures import keep_changed

        try:
            if keep_changed(self._path, _SECONDS):
                return True
        except Exception as error:  # noqa: BLE001 - the spans are written, and readers compute the statistics
            _log.info("figures of traces are stored later", path=str(self._path), reason=str(error))
        database.changed_traces = 0
        return False


class IndexKeeper:
    """Indexes traces, after a batch and in idle time."""

    def __init__(self, path: Place) -> None:
        self._path = path
        self._logged_reason: str | None = None

    def keep(self, database: Database) -> bool:
        """Index traces; return whether more wait."""
        if database.unindexed_traces < INDEXED_AT_ONCE:
            return False
        # Imported late: few processes need it.
        from kantan_agents.traces.store.index import index_new

        try:
            if index_new(self._path, _SECONDS, INDEXED_AT_ONCE):
                return True
        except Exception as error:  # noqa: BLE001 - the spans are written, and searches read them
            if str(error) != self._logged_reason:
                self._logged_reason = str(error)
                _log.info("traces are indexed later", path=str(self._path), reason=str(error))
        database.unindexed_traces = 0
        return False
