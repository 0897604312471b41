"""Stores the figures of the traces that the writer has written, now and then and a bounded time each."""

from __future__ import annotations

from pathlib import Path

from kantan_agents.support.log import get_logger
from kantan_agents.traces.recorder.database import Database

# Until so many traces wait, readers compute the figures, in some hundredths of a second.
AT_ONCE = 500

_SECONDS = 0.05

_log = get_logger("kantan_agents.tracing")


class FigureKeeper:
    """Stores the figures of traces that changed, after a batch, on the writer's thread.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def keep(self, database: Database) -> bool:
        """Store the figures of changed traces for a bounded time, if many wait; return whether more do."""
        if database.changed_traces < AT_ONCE:
            return False
        # Imported late: a process that only records a few traces needs none of it.
        from kantan_agents.traces.store.keep import keep_changed

        try:
            if keep_changed(self._path, _SECONDS):
                return True
        except Exception as error:  # noqa: BLE001 - the spans are written, and readers compute the figures
            _log.info("figures of traces are stored later", path=str(self._path), reason=str(error))
        database.changed_traces = 0
        return False
