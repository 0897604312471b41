"""Records runs in a file, and reads what their rules decided."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import agents
import attrs

from kantan_agents import Agent, KantanAgentsError, SQLiteRecorder, TraceStore, WhatIf, what_if
from kantan_agents.traces.capture import RecordedDecision, ToolCallRecord


@attrs.frozen(eq=False)
class Recording:
    """A file to which runs are recorded."""

    path: Path

    @property
    def store(self) -> TraceStore:
        return TraceStore(self.path)

    async def run(self, agent: Agent[Any], rules: Any = None, **context: Any) -> str:
        """Run an agent in a trace of its own; return the id of the trace. Errors of the run do not matter."""
        given = {**context, **({} if rules is None else {"tool_rules": rules})}
        # A run ends if all of its calls are invalid.
        with agents.trace("a run") as trace, suppress(KantanAgentsError):
            await agent.run_async("Go", given)
        return trace.trace_id

    def calls(self, trace_id: str) -> list[ToolCallRecord]:
        return [*self.store.trace(trace_id).tool_calls]

    def ask(self, rules: Any, *trace_ids: str, **options: Any) -> WhatIf:
        traces = [trace for trace in self.store.recorded_calls() if trace.trace_id in trace_ids]
        assert traces
        return what_if(rules, traces, **options)


@contextmanager
def recording(path: Path, **options: Any) -> Iterator[Recording]:
    recorder = SQLiteRecorder(path, **options)
    agents.set_trace_processors([recorder])
    try:
        yield Recording(path)
    finally:
        agents.set_trace_processors([])
        recorder.shutdown()


def predicted(answer: WhatIf, calls: list[ToolCallRecord]) -> dict[str, bool]:
    """Return by call id whether the other rules would have allowed the call."""
    flipped = {flip.call_id for flip in answer.flips}
    return {call.call_id: allowed(call) != (call.call_id in flipped) for call in calls}


def allowed(call: ToolCallRecord) -> bool:
    return decision(call).is_allowed


def decision(call: ToolCallRecord) -> RecordedDecision:
    assert call.decision is not None
    return attrs.evolve(call.decision, layers=tuple(call.decision.layers))
