"""The complete record of a run: what a model was asked, what the rules decided, what tools returned."""

from kantan_agents.traces.capture.model_calls import ModelAnswer, ModelCallRecord, ModelRequest, OutputRequest
from kantan_agents.traces.capture.recorded_errors import RecordedError
from kantan_agents.traces.capture.run_calls import RunCalls, TraceCalls
from kantan_agents.traces.capture.tool_calls import RecordedDecision, RuleSet, ToolCallRecord, ToolDefinition
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
