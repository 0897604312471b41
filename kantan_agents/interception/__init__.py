"""Middleware: its base class, the calls it receives, and the chain around each call."""

from kantan_agents.interception.calls import ModelCall, ModelNext, TextRewriter, ToolCall, ToolNext
from kantan_agents.interception.chain import around_model_call, around_tool_call
from kantan_agents.interception.inherited import inherited_layers
from kantan_agents.interception.middleware import Layers, Middleware, layers_of
from kantan_agents.interception.named_tools import NamedTools, tool_of
from kantan_agents.interception.run_state import (
    Redactor,
    active_agent,
    add_redactor,
    end_run_with,
    error_message,
    forget_pending_error,
    pending_error,
    redacted_data,
    redacted_error,
    redacted_input,
    track_call,
    tracked_calls,
)
from kantan_agents.interception.tool_calls import (
    checking_rules,
    current_tool_call,
    emit_refusal,
    record_failure,
    record_refusal,
    run_tool_call,
)

__all__ = [
    "Layers",
    "Middleware",
    "ModelCall",
    "ModelNext",
    "NamedTools",
    "Redactor",
    "TextRewriter",
    "ToolCall",
    "ToolNext",
    "active_agent",
    "add_redactor",
    "around_model_call",
    "around_tool_call",
    "checking_rules",
    "current_tool_call",
    "emit_refusal",
    "end_run_with",
    "error_message",
    "forget_pending_error",
    "inherited_layers",
    "layers_of",
    "pending_error",
    "record_failure",
    "record_refusal",
    "redacted_data",
    "redacted_error",
    "redacted_input",
    "run_tool_call",
    "tool_of",
    "track_call",
    "tracked_calls",
]
