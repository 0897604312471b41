"""Kinds and text of conversation items.

Add a new kind of tool call here, with the kind of its result.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

CALL_OF: Final[Mapping[str, str]] = {
    "function_call_output": "function_call",
    "custom_tool_call_output": "custom_tool_call",
    "shell_call_output": "shell_call",
    "apply_patch_call_output": "apply_patch_call",
    "computer_call_output": "computer_call",
    "local_shell_call_output": "local_shell_call",
    "tool_search_output": "tool_search_call",
    "program_output": "program",
    "mcp_approval_response": "mcp_approval_request",
}
"""Item types of results, each with the type of its call."""

IN_ANSWER: Final = frozenset({"tool_search_output", "program_output"})
"""The provider itself may run these calls."""

CALLS_FOR_SDK: Final = frozenset(call for result, call in CALL_OF.items() if result not in IN_ANSWER)
"""Call types that the SDK handles: tools, handoffs, approvals."""

NAMED_CALLS: Final = ("function_call", "custom_tool_call")
"""Call types for the application's tools."""


def get(item: Any, name: str) -> Any:
    """Return a field; None if missing."""
    return item.get(name) if isinstance(item, dict) else getattr(item, name, None)


def is_call(item: Any) -> bool:
    """Whether an item calls a function tool."""
    return bool(get(item, "type") == "function_call")


def is_result(item: Any) -> bool:
    """Whether an item is a tool's result."""
    return bool(get(item, "type") == "function_call_output")


def is_message(item: Any) -> bool:
    """Whether an item is a message, with or without a type."""
    return get(item, "type") in (None, "message")


def is_answer(item: Any) -> bool:
    """Whether an item is a model's message."""
    return is_message(item) and get(item, "role") == "assistant"


def is_reasoning(item: Any) -> bool:
    """Whether an item is a model's reasoning."""
    return bool(get(item, "type") == "reasoning")


def call_item(call_id: str, tool: str, arguments: str) -> dict[str, Any]:
    """Return a function tool's call."""
    return {"type": "function_call", "call_id": call_id, "name": tool, "arguments": arguments}


def result_item(call_id: str, output: Any) -> dict[str, Any]:
    """Return a function tool's result."""
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def text_of(content: Any, separator: str = "\n") -> str:
    """Return the text in a message's content."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return separator.join(text for text in texts if isinstance(text, str))


def parsed(text: Any) -> Any:
    """Return parsed JSON, or the value itself."""
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
