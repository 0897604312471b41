"""The complete record of a run."""

from kantan_agents.traces.capture.calls import (
    ModelAnswer,
    ModelCallRecord,
    ModelRequest,
    OutputRequest,
    RecordedDecision,
    RecordedError,
    RuleSet,
    RunCalls,
    ToolCallRecord,
    ToolDefinition,
    TraceCalls,
)
from kantan_agents.traces.capture.values import AgentRecord, PromptRecord, RunRecord

__all__ = [
    "AgentRecord",
    "ModelAnswer",
    "ModelCallRecord",
    "ModelRequest",
    "OutputRequest",
    "PromptRecord",
    "RecordedDecision",
    "RecordedError",
    "RuleSet",
    "RunCalls",
    "RunRecord",
    "ToolCallRecord",
    "ToolDefinition",
    "TraceCalls",
]
