"""Notices that other trace processors have replaced the recorder of ``record_traces``."""

from __future__ import annotations

from agents.tracing import get_trace_provider

from kantan_agents.errors import RecorderReplacedError
from kantan_agents.support.log import get_logger
from kantan_agents.traces.registry import Main, main_recorder, recorders

_log = get_logger("kantan_agents.tracing")


def log_lost_recorder(trace_id: str) -> None:
    """Log once if the recorder of ``record_traces`` did not receive the start of this trace (E66)."""
    recorder = main_recorder()
    if recorder is None or Main.is_known_lost or not recorder.misses(trace_id):
        return
    # The SDK has no public function that returns its processors. Another provider may have none.
    multi = getattr(get_trace_provider(), "_multi_processor", None)
    known = recorders()
    if any(processor in known for processor in getattr(multi, "_processors", known)):
        return  # traces are recorded, if perhaps in another file
    Main.is_known_lost = True
    error = RecorderReplacedError(path=str(recorder.path))
    _log.warning(str(error), code=error.code, **error.data)
