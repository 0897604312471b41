"""The outputs of tool spans."""

from __future__ import annotations

from typing import Any

from agents import FunctionSpanData
from agents.tool import FunctionToolResult


def with_tool_output(exported: dict[str, Any], span_data: FunctionSpanData) -> dict[str, Any]:
    """Return the export of a tool's span with what the tool has given to the model; None if it has not run.

    For a call that waits for an approval, or that a person has refused, the SDK puts a result of its own on
    the span. As text, that is pages of its settings.
    """
    result = span_data.output
    return {**exported, "output": result.output} if isinstance(result, FunctionToolResult) else exported
