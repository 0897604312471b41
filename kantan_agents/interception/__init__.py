"""The user's own code around model calls and tool calls: what it gets, and how it is chained."""

from kantan_agents.interception.asking_agent import asking_agent
from kantan_agents.interception.calls import ModelCall, ModelNext, TextRewriter, ToolCall, ToolNext
from kantan_agents.interception.chain import around_model_call, around_tool_call
from kantan_agents.interception.middleware import Layers, Middleware, layers_of
from kantan_agents.interception.open_calls import none_left_open, note_open_call
from kantan_agents.interception.run_end import end_run_with, forget_pending_error, pending_error
from kantan_agents.interception.tool_calls import (
    asking_rules,
    current_tool_call,
    note_failure,
    note_refusal,
    told_refusal,
    tool_call_made,
)

__all__ = [
    "Layers",
    "Middleware",
    "ModelCall",
    "ModelNext",
    "TextRewriter",
    "ToolCall",
    "ToolNext",
    "around_model_call",
    "around_tool_call",
    "asking_agent",
    "asking_rules",
    "current_tool_call",
    "end_run_with",
    "forget_pending_error",
    "layers_of",
    "none_left_open",
    "note_failure",
    "note_open_call",
    "note_refusal",
    "pending_error",
    "told_refusal",
    "tool_call_made",
]
