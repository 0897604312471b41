"""What the writer stores of traces that it has written: their figures, and their texts in the search index.

Both are done now and then, on the writer's thread, and for a bounded time each. Until then, readers compute
the figures and search the texts themselves.
"""

from __future__ import annotations

from kantan_agents.support.log import get_logger
from kantan_agents.traces.database_url import Place
from kantan_agents.traces.recorder.database import Database

# Until so many traces wait, readers compute the figures, in some hundredths of a second.
FIGURES_AT_ONCE = 500

# Fewer would take more space and time in the index. A search reads so many traces in some milliseconds.
INDEXED_AT_ONCE = 128

_SECONDS = 0.05

_log = get_logger("kantan_agents.tracing")


class FigureKeeper:
    """Stores the figures of traces that changed, after a batch.

    Args:
        path: The file.
    """

    def __init__(self, path: Place) -> None:
        self._path = path

    def keep(self, database: Database) -> bool:
        """Store the figures of changed traces for a bounded time, if many wait; return whether more do."""
        if database.changed_traces < FIGURES_AT_ONCE:
            return False
        # Imported late: a process that only records a few traces needs none of it.
        from kantan_agents.traces.store.store_figures import keep_changed

        try:
            if keep_changed(self._path, _SECONDS):
                return True
        except Exception as error:  # noqa: BLE001 - the spans are written, and readers compute the figures
            _log.info("figures of traces are stored later", path=str(self._path), reason=str(error))
        database.changed_traces = 0
        return False


class IndexKeeper:
    """Puts traces into the search index, after a batch and in idle time.

    Args:
        path: The file.
    """

    def __init__(self, path: Place) -> None:
        self._path = path
        self._logged_reason: str | None = None

    def keep(self, database: Database) -> bool:
        """Index traces for a bounded time, if many wait; return whether there are more."""
        if database.unindexed_traces < INDEXED_AT_ONCE:
            return False
        # Imported late: a process that only records a few traces needs none of it.
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
