"""Removes model output from errors, in runs without sensitive data."""

from __future__ import annotations

from typing import Any

from agents import RunConfig

from kantan_agents.core.pipeline import current_run

WITHHELD = "not recorded"

# The SDK's fixed messages, with their data without output of a model or a tool. Other strings may be
# arguments, or names that the model invented.
_FIXED: dict[str, tuple[str, ...]] = {
    "Error running tool": ("tool_name", "error", "error_type", "code"),
    "Tool execution cancelled": ("tool_name", "error"),
    "Error getting response": ("error",),
    "Error streaming response": ("error",),
    "Error in agent run": ("error",),
    "Max turns exceeded": ("max_turns",),
    "Guardrail tripwire triggered": ("guardrail", "type"),
    "Tool not found": (),
    "Custom tool not found": (),
    "MCP server label not found": (),
    "Multiple handoffs requested": (),
    "Invalid JSON": ("details",),
    "Invalid JSON provided": (),
    "Handoff function expected non-null input, but got None": ("details",),
}
_OWN = ("error_type", "code")


def records_sensitive_data() -> bool:
    """Return whether the current run records sensitive data; by default as the SDK."""
    run = current_run.get()
    config = RunConfig() if run is None or run.run_config is None else run.run_config
    return bool(config.trace_include_sensitive_data)


def private_error(error: Any) -> Any:
    """Drop strings of a span's error that a model or a tool may have produced."""
    if not isinstance(error, dict):
        return {"message": WITHHELD, "data": None}
    message, data = error.get("message"), error.get("data")
    data = data if isinstance(data, dict) else {}
    if message in _FIXED:
        kept = _FIXED[message]
    else:
        kept = _OWN  # the message of this library's errors is their class name
        message = message if message == data.get("error_type") else WITHHELD
    return {"message": message, "data": {key: data[key] for key in kept if key in data} or None}
