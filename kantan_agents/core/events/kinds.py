"""All kinds of events.

Every start has exactly one end, even after an error or a cancellation: a run ends with ``RunFinished``,
``RunFailed`` or ``RunCancelled``, a stage with ``StageLeft``, a model call with ``ModelCallFinished``, and a
tool call with ``ToolCallFinished`` or ``ToolCallDenied``.
"""

from __future__ import annotations

from typing import TypeAlias

from kantan_agents.core.events.of_models import (
    HistoryCompacted,
    ModelCallFinished,
    ModelCallStarted,
    RawResponseEvent,
    ReasoningDelta,
    RetryScheduled,
    TextDelta,
    ToolArgumentsDelta,
)
from kantan_agents.core.events.of_runs import (
    Delegated,
    HandedOff,
    MCPServerOmitted,
    OutputStored,
    RolloutChanged,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunStarted,
    StageEntered,
    StageLeft,
)
from kantan_agents.core.events.of_tools import (
    ApprovalNeeded,
    ToolCallDenied,
    ToolCallFinished,
    ToolCallStarted,
)

Event: TypeAlias = (
    RunStarted
    | RunFinished
    | RunFailed
    | RunCancelled
    | StageEntered
    | StageLeft
    | ModelCallStarted
    | TextDelta
    | ReasoningDelta
    | ToolArgumentsDelta
    | RawResponseEvent
    | ModelCallFinished
    | RetryScheduled
    | HistoryCompacted
    | ToolCallStarted
    | ToolCallFinished
    | ToolCallDenied
    | HandedOff
    | Delegated
    | ApprovalNeeded
    | MCPServerOmitted
    | OutputStored
    | RolloutChanged
)
"""Any event of a run, as a union discriminated by ``type``: type checkers narrow it to ``TextDelta`` after
``if event.type == "text_delta"`` and in ``match``."""

EVENT_KINDS: tuple[type[Event], ...] = (
    RunStarted,
    RunFinished,
    RunFailed,
    RunCancelled,
    StageEntered,
    StageLeft,
    ModelCallStarted,
    TextDelta,
    ReasoningDelta,
    ToolArgumentsDelta,
    RawResponseEvent,
    ModelCallFinished,
    RetryScheduled,
    HistoryCompacted,
    ToolCallStarted,
    ToolCallFinished,
    ToolCallDenied,
    HandedOff,
    Delegated,
    ApprovalNeeded,
    MCPServerOmitted,
    OutputStored,
    RolloutChanged,
)
"""All event classes."""
