"""What is recorded of a run, and where; the trace database itself is kantan-llm's."""

from agents import add_trace_processor, set_trace_processors

from kantan_agents.tracing.ids import new_run_id, trace_id_of
from kantan_agents.tracing.metadata import finite, flatten_meta, prompt_metadata, run_metadata
from kantan_agents.tracing.spans import (
    record_final_output,
    record_metadata,
    run_trace,
    user_input,
)

__all__ = [
    "add_trace_processor",
    "finite",
    "flatten_meta",
    "new_run_id",
    "prompt_metadata",
    "record_final_output",
    "record_metadata",
    "run_metadata",
    "run_trace",
    "set_trace_processors",
    "trace_id_of",
    "user_input",
]
