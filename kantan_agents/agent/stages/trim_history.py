"""Sixth stage: appends input and answer to the history."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kantan_agents.core.context import append_history, check_history
from kantan_agents.core.items import text_of
from kantan_agents.core.pipeline import Next, Run, calls_next_last
from kantan_agents.models.structured import json_data
from kantan_agents.tools.output_text import tool_output_text
from kantan_agents.traces.spans import user_input


@calls_next_last
async def trim_history(run: Run, call_next: Next) -> None:
    """Append the input and the answer to ``context["history"]`` and keep the latest (spec 10).

    Each run appends two dicts ``{"role": "user" | "assistant", "text": str}``; the agent's ``history`` is the
    number of dicts to store. With 0, the context's history does not change. A run that waits for an approval,
    or was stopped after a turn, has no answer yet; both dicts are appended when it is resumed and finishes.

    Raises:
        HistoryTypeError: E6, a tool or a stage has replaced the list with another type.
    """
    limit, given = run.agent.history, run.input
    if limit > 0 and not (run.is_stopped or getattr(run.result, "interruptions", None)):
        entries = [
            {"role": "user", "text": given if isinstance(given, str) else input_text(user_input(run))},
            {"role": "assistant", "text": output_text(run.result)},
        ]
        history = check_history(run.context.setdefault("history", []))
        run.on_failure(append_history(history, entries, limit))
    await call_next(run)


def input_text(value: Any) -> str:
    """Return the user's input, or the last user message, as a string."""
    if isinstance(value, str):
        return value
    for item in reversed(value or []):
        if isinstance(item, Mapping) and item.get("role") == "user":
            return text_of(item.get("content"))
    return ""


def output_text(result: Any) -> str:
    """Return the answer as a string: a structured output as JSON, MCP content as its text."""
    try:
        output, items = result.final_output, result.new_items
    except AttributeError:  # a stage has set it
        output, items = getattr(result, "final_output", result), ()
    if items and items[-1].type == "tool_call_output_item":
        return _text_of_tool(output, items)
    data = json_data(output)
    if data is None or isinstance(data, str):
        return data or ""
    return json.dumps(data, ensure_ascii=False)


def _text_of_tool(output: Any, items: Sequence[Any]) -> str:
    # For an agent without output type, the SDK stores `str(output)`.
    for item in reversed(items):
        if item.type == "tool_call_output_item" and (item.output is output or str(item.output) == output):
            of_server = getattr(item.tool_origin, "mcp_server_name", None) is not None
            return tool_output_text(item.output, from_server=of_server)
    return tool_output_text(output)
