"""The complete record of a run: what a model was asked, what the rules decided, what tools returned."""

from kantan_agents.capture.run_calls import RunCalls, TraceCalls
from kantan_agents.capture.values import (
    AgentRecord,
    ModelAnswer,
    ModelCallRecord,
    ModelRequest,
    OutputRequest,
    PromptRecord,
    RecordedDecision,
    RecordedError,
    RuleSet,
    RunRecord,
    ToolCallRecord,
    ToolDefinition,
)

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
