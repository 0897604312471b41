"""The recorder: a trace processor that writes traces to the database from its own thread."""

from kantan_agents.traces.recorder.record import record_traces
from kantan_agents.traces.recorder.recorder import SQLiteRecorder
from kantan_agents.traces.recorder.redaction import redact_texts
from kantan_agents.traces.recorder.stats import RecorderStats

__all__ = ["RecorderStats", "SQLiteRecorder", "record_traces", "redact_texts"]
