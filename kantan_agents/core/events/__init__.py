"""Run events and their emitter."""

from kantan_agents.core.events.base import EventBase, Outcome
from kantan_agents.core.events.emitter import Emitter, emitter_for
from kantan_agents.core.events.kinds import EVENT_KINDS, Event
from kantan_agents.core.events.observers import Handler, Observers, Subscription, subscribe
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
from kantan_agents.core.events.schema import event_schema

__all__ = [
    "EVENT_KINDS",
    "ApprovalNeeded",
    "Delegated",
    "Emitter",
    "Event",
    "EventBase",
    "HandedOff",
    "Handler",
    "HistoryCompacted",
    "MCPServerOmitted",
    "ModelCallFinished",
    "ModelCallStarted",
    "Observers",
    "Outcome",
    "OutputStored",
    "RawResponseEvent",
    "ReasoningDelta",
    "RetryScheduled",
    "RolloutChanged",
    "RunCancelled",
    "RunFailed",
    "RunFinished",
    "RunStarted",
    "StageEntered",
    "StageLeft",
    "Subscription",
    "TextDelta",
    "ToolArgumentsDelta",
    "ToolCallDenied",
    "ToolCallFinished",
    "ToolCallStarted",
    "emitter_for",
    "event_schema",
    "subscribe",
]
