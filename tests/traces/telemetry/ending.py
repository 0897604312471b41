"""Ends exporters of OpenTelemetry. Their threads would disturb later tests, as their collector is gone."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection

from agents import set_trace_processors

from kantan_agents import OtelExporter
from kantan_agents.traces.registry import exporters

FLUSH = 30.0
_THREADS = ("Otel", "kantan-agents-otel")


def end_exporters(earlier: Collection[threading.Thread]) -> None:
    """End all exporters, and wait for the threads that are not among the earlier ones."""
    set_trace_processors([])
    for exporter in exporters():
        if isinstance(exporter, OtelExporter):
            exporter._ending()  # as when it is collected
    end = time.monotonic() + FLUSH
    for thread in set(threading.enumerate()) - set(earlier):
        if thread.name.startswith(_THREADS):
            thread.join(max(0.0, end - time.monotonic()))
