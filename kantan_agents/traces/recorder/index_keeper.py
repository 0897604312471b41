"""Puts the traces that the writer has written into the search index, many at a time and when it has time."""

from __future__ import annotations

from pathlib import Path

from kantan_agents.support.log import get_logger
from kantan_agents.traces.recorder.database import Database

# Fewer would take more space and time in the index. A search reads so many traces in some milliseconds.
AT_ONCE = 128

_SECONDS = 0.05

_log = get_logger("kantan_agents.tracing")


class IndexKeeper:
    """Indexes traces after a batch and in idle time, on the writer's thread.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._logged_reason: str | None = None

    def keep(self, database: Database) -> bool:
        """Index traces for a bounded time, if many wait; return whether there are more."""
        if database.unindexed_traces < AT_ONCE:
            return False
        # Imported late: a process that only records a few traces needs none of it.
        from kantan_agents.traces.store.index import index_new

        try:
            if index_new(self._path, _SECONDS, AT_ONCE):
                return True
        except Exception as error:  # noqa: BLE001 - the spans are written, and searches read them
            if str(error) != self._logged_reason:
                self._logged_reason = str(error)
                _log.info("traces are indexed later", path=str(self._path), reason=str(error))
        database.unindexed_traces = 0
        return False
