"""The tool calls of recorded runs, without the rest of their records."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import attrs

from kantan_agents.traces.capture.tool_calls import ToolCallRecord


@attrs.frozen
class RunCalls:
    """The tool calls of one run: as much of its record as a question about its rules needs.

    Attributes:
        id: ``agent_run_id`` of the run.
        trace_id: Id of its trace.
        agent: Name of the agent that was run.
        tool_calls: The tool calls in the order in which they began.
        started_at: When the run began, in UTC.
        parent_run: Id of the run inside which this one began.
        parent_call: Id of the tool call inside which this one began.
        missing: What could not be recorded; empty if the record is complete.
    """

    id: str
    trace_id: str
    agent: str
    tool_calls: Sequence[ToolCallRecord]
    started_at: datetime
    parent_run: str | None = None
    parent_call: str | None = None
    missing: Sequence[str] = ()


@attrs.frozen
class TraceCalls:
    """The tool calls of the runs in one trace.

    Attributes:
        trace_id: Id of the trace.
        runs: The runs in the order of their starts, those inside other runs included.
        missing: What is not recorded; empty if all of its runs are recorded completely.
    """

    trace_id: str
    runs: Sequence[RunCalls]
    missing: Sequence[str] = ()
