"""The recorder, which writes traces from its own thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kantan_agents.support.package_names import lazy_names

if TYPE_CHECKING:
    from kantan_agents.traces.recorder.background import RecorderStats
    from kantan_agents.traces.recorder.record import record_traces
    from kantan_agents.traces.recorder.recorder import SQLiteRecorder
    from kantan_agents.traces.recorder.redaction import redact_texts

__all__ = [
    "RecorderStats",
    "SQLiteRecorder",
    "record_traces",
    "redact_texts",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kantan_agents.traces.recorder.record": ("record_traces",),
        "kantan_agents.traces.recorder.recorder": ("SQLiteRecorder",),
        "kantan_agents.traces.recorder.redaction": ("redact_texts",),
        "kantan_agents.traces.recorder.background": ("RecorderStats",),
    },
)
