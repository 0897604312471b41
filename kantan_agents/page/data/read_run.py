"""Reads a run from a database, as the page shows it."""

from __future__ import annotations

from typing import Any

from kantan_agents.lab.replay.experiment.prices import Prices
from kantan_agents.page.data.run_view import run_view
from kantan_agents.page.data.scores import scores_of
from kantan_agents.traces.store import TraceStore


def read_run(store: TraceStore, trace_id: str, prices: Prices | None = None) -> dict[str, Any]:
    """Return a run as JSON data.

    Args:
        store: The database.
        trace_id: As ``store.trace`` takes it.
        prices: What tokens cost; without them, no cost is known.

    Raises:
        TraceNotFoundError: E61, there is no such trace.
        TraceDatabaseError: E60, the file cannot be read.
    """
    trace = store.trace(trace_id)
    return run_view(trace, scores_of(store.path, trace.trace_id), prices)
