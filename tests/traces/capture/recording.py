"""Reads back the complete records of runs, and compares them with what a server received."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from kantan_agents import SQLiteRecorder, StoredTrace, TraceStore
from kantan_agents.testing import RecordedRequest
from kantan_agents.traces.capture import ModelCallRecord, RunRecord, ToolCallRecord


@attrs.frozen
class Recording:
    """A recorder and the file that it writes."""

    recorder: SQLiteRecorder

    @property
    def store(self) -> TraceStore:
        """The store of the file."""
        return TraceStore(self.recorder.path)

    def traces(self) -> list[StoredTrace]:
        """Return everything recorded so far, the oldest trace first."""
        store = self.store
        return [store.trace(summary.trace_id) for summary in reversed(store.traces(limit=None))]

    def trace(self) -> StoredTrace:
        """Return the only trace."""
        (found,) = self.traces()
        return found

    def run(self) -> RunRecord:
        """Return the only run, which must be recorded completely."""
        trace = self.trace()
        assert trace.missing == ()
        (run,) = trace.runs
        return run

    def call(self) -> ModelCallRecord:
        """Return the only model call of the only run."""
        (call,) = self.run().model_calls
        return call

    def tool_call(self) -> ToolCallRecord:
        """Return the only tool call of the only run."""
        (call,) = self.run().tool_calls
        return call


def sent_tools(request: RecordedRequest) -> list[dict[str, Any]]:
    """Return name, description, parameters and strictness of the function tools in a request, in order."""
    tools = [tool.get("function", tool) for tool in request.body.get("tools") or ()]
    return [
        {
            "name": tool["name"],
            "description": tool.get("description", ""),
            "parameters": tool["parameters"],
            "is_strict": tool.get("strict", False),
        }
        for tool in tools
        if "parameters" in tool
    ]


def recorded_tools(call: ModelCallRecord) -> list[dict[str, Any]]:
    """Return the same of the tools and hand-offs of a recorded call."""
    return [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "is_strict": tool.is_strict,
        }
        for tool in (*call.request.tools, *call.request.handoffs)
        if tool.kind in ("function", "handoff")
    ]


def assert_sent(call: ModelCallRecord, request: RecordedRequest) -> None:
    """Check that a recorded call says what the server received for it."""
    given = call.request
    assert call.model == request.model
    assert call.url.rstrip("/").endswith("/v1")
    assert call.is_streamed == request.streamed
    assert call.api == ("responses" if request.path.endswith("/responses") else "chat completions")
    assert given.instructions == request.system_instructions
    assert recorded_tools(call) == sent_tools(request)
    if call.api == "responses":
        wanted = [{"role": "user", "content": given.input}] if isinstance(given.input, str) else given.input
        assert [*wanted] == request.input
    for name, value in given.settings.items():
        if name in request.body and not isinstance(value, Mapping):
            assert request.body[name] == value, name
