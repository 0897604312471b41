"""Hosted tools, conversations and prompts of a recorded run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kantan_agents.core.items import CALLS_FOR_SDK
from kantan_agents.traces.capture import ModelCallRecord, ToolDefinition

LOCAL_KINDS: Final = ("function", "handoff", "custom", "shell", "local_shell", "apply_patch")
"""Tools that run in this process; others run at the provider or are unknown."""

_HELD: Final = ("previous_response_id", "conversation_id", "prompt")
_LOCAL_ITEMS: Final = {
    *("message", "reasoning", "compaction"),
    *(CALLS_FOR_SDK - {"shell_call", "mcp_approval_request"}),
}
_OTHER_NAMES: Final = {
    "mcp_call": "hosted_mcp",
    "mcp_list_tools": "hosted_mcp",
    "mcp_approval_request": "hosted_mcp",
    "program": "programmatic_tool_calling",
    "program_output": "programmatic_tool_calling",
}
_ENDINGS: Final = ("_output", "_call")


def held_by_provider(options: Mapping[str, Any]) -> list[str]:
    """Return the options that use a conversation or a prompt stored at the provider."""
    return [name for name in _HELD if options.get(name)]


def why_not_repeated(held: str) -> str:
    """Return why a request with this option cannot be repeated."""
    if held == "prompt":
        return "its prompt is held by the provider, and may have tools that would run there"
    return f"its conversation is held by the provider ({held}), a repetition would continue it"


def runs_here(tool: ToolDefinition) -> bool:
    """Return whether a recorded tool ran in this process."""
    environment = tool.options.get("environment") if tool.kind == "shell" else None
    is_hosted = isinstance(environment, Mapping) and environment.get("type", "local") != "local"
    return tool.kind in LOCAL_KINDS and not is_hosted


def hosted_work(call: ModelCallRecord) -> Iterator[str]:
    """Yield the hosted tool, such as ``web_search``, of each part of an answer; unknown kinds count."""
    for item in () if call.answer is None else call.answer.output:
        kind = str(item.get("type"))
        name = _OTHER_NAMES.get(kind, kind)
        for ending in _ENDINGS:
            name = name.removesuffix(ending)
        is_local = kind in _LOCAL_ITEMS or (name == "shell" and _has_local_shell(call))
        if not is_local:
            yield name


def _has_local_shell(call: ModelCallRecord) -> bool:
    shells = [tool for tool in call.request.tools if tool.kind == "shell"]
    return bool(shells) and all(runs_here(tool) for tool in shells)
