"""Last stage: records the outcome of the run."""

from __future__ import annotations

from kantan_agents.core.pipeline import Next, Run, calls_next_last
from kantan_agents.traces.spans import record_final_output, record_stop


@calls_next_last
async def emit_metadata(run: Run, call_next: Next) -> None:
    """Record the user's input, the final output and a rubric in the trace (spec 5.3).

    Last, so that only a run whose answer was stored is recorded as finished. A run that fails earlier is
    recorded as failed, with its input. A run that waits for an approval has no output: another run continues
    it. A run that was stopped after a turn has no output, and is recorded as stopped.
    """
    record_final_output(run)
    if run.is_stopped:
        record_stop(run)
    await call_next(run)
