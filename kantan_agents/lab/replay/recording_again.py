"""``record_again``: runs an agent for real with the input of a recording, and returns the new recording."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kantan_agents.agent import Agent
from kantan_agents.agent.running.sync_of import sync_of
from kantan_agents.core.events import Event, RunStarted
from kantan_agents.errors import IncompleteRecordError, TraceDatabaseError, TraceNotFoundError
from kantan_agents.lab.experiment.record_too import record_too
from kantan_agents.lab.replay.recording import Recording, values_before
from kantan_agents.lab.replay.run_again import context_of, run_again
from kantan_agents.traces.store import TraceStore


async def record_again_async(
    recording: Recording,
    agent: Agent[Any],
    *,
    context: Mapping[str, Any] | None = None,
    **runner_options: Any,
) -> Recording:
    """Do the same as ``record_again`` on the running event loop."""
    started: list[RunStarted] = []

    def note(event: Event) -> None:
        if isinstance(event, RunStarted):
            started.append(event)

    recorded = recording.root
    given = {**values_before(recorded), **context_of(recorded, context)}
    with tempfile.TemporaryDirectory() as folder, record_too(path := Path(folder, "run.sqlite3")) as recorder:
        with agent.subscribe(note):
            try:
                await run_again(agent, recorded, given, runner_options)
            except Exception:
                if recorded.error is None:
                    raise
        await recorder.force_flush_async()
        try:
            first = started[0]
            found = Recording.from_trace(TraceStore(path), str(first.trace_id), run=first.run_id)
        except (IndexError, TraceDatabaseError, TraceNotFoundError) as error:
            reason = "the new run was not traced; allow tracing in this process"
            raise IncompleteRecordError(trace_id=recording.trace_id, reason=reason) from error
        return found


@sync_of(record_again_async)
def record_again() -> None:
    """Run an agent for real with the input of a recording, and return the recording of that run.

    Use it to refresh a recording after an intended change of the agent. Its models are called and its tools
    run. The context has the explicit tool rules and the values that the templates of the recorded run read.

    Args:
        recording: The recording.
        agent: The current agent.
        context: Other values for the context, which override the recorded ones.
        **runner_options: More options for ``run_async`` than the recorded ones.

    Raises:
        IncompleteRecordError: E90, the new run was not recorded completely, for example because tracing is
            disabled.
        Exception: The agent's error, unless the recorded run failed as well.
    """
