"""Applies the tool rules to tools at the provider."""

from __future__ import annotations

import copy
import inspect
from typing import Any, cast

from agents import HostedMCPTool

from kantan_agents.tool_rules import RuleLayers, ToolFacts, ToolRules
from kantan_agents.tool_rules.decide import schema_of
from kantan_agents.tools.facts import facts_of, label_of
from kantan_agents.tools.guards.guard import Rulebook, ToolGuard
from kantan_agents.tools.server_names import ANY_TOOL, Surroundings, hosted_mcp_facts

# Item types of tools that a provider has run itself, and the names of these tools.
_HOSTED_CALLS = {
    "web_search_call": ("web_search", "web_search_preview"),
    "file_search_call": ("file_search",),
    "code_interpreter_call": ("code_interpreter",),
    "image_generation_call": ("image_generation",),
}


def rule_hosted_mcp(
    tool: HostedMCPTool, layers: RuleLayers, book: Rulebook | None, around: Surroundings
) -> HostedMCPTool | None:
    """Return the tool as the rules permit it, or None if they hide it.

    The provider calls a server's tools itself unless an approval is required. So if a rule may concern single
    tools, each call requires an approval, which the rules answer.
    """
    server = facts_of(tool, around)
    narrowing = [rules for rules in layers.rule_sets if _is_about_tools_of(server, rules)]
    if not narrowing:
        return tool
    any_tool = hosted_mcp_facts(label_of(tool), ANY_TOOL, around)
    if not all(_may_be_used(rules, server, any_tool) for rules in narrowing):
        return None
    if tool.on_approval_request is None and _requires_approval(tool):
        # A person answers its approvals, without seeing the rules.
        return None
    ruled = copy.copy(tool)
    ruled.tool_config = cast("Any", {**tool.tool_config, "require_approval": "always"})
    ruled.on_approval_request = _ApprovalByRules(tool, book, around)
    return ruled


def _is_about_tools_of(server: ToolFacts, rules: ToolRules) -> bool:
    covered = rules.allow is None or rules.allowing(server.names, server.origin) is not None
    return bool(rules.deny) or bool(rules.params) or not covered


def _may_be_used(rules: ToolRules, server: ToolFacts, any_tool: ToolFacts) -> bool:
    if rules.denying(any_tool.names) is not None:
        return False
    if rules.allow is None or rules.permits(*any_tool.names, origin=any_tool.origin):
        return True
    prefixes = tuple(f"{name}__" for name in server.names[1:])
    return isinstance(rules.allow, tuple) and any(entry.startswith(prefixes) for entry in rules.allow)


def _requires_approval(tool: HostedMCPTool) -> bool:
    return tool.tool_config.get("require_approval", "always") != "never"


class _ApprovalByRules:
    """Answers by the rules, then by the tool's own handler."""

    def __init__(self, tool: HostedMCPTool, book: Rulebook | None, around: Surroundings) -> None:
        self._tool = tool
        self._book = book
        self._around = around

    async def __call__(self, request: Any) -> Any:
        facts = hosted_mcp_facts(label_of(self._tool), request.data.name, self._around)
        guard = ToolGuard(facts, self._book)
        refusal = await guard.refusal(request.ctx_wrapper, request.data.arguments)
        if refusal is not None:
            return {"approve": False, "reason": refusal}
        if self._tool.on_approval_request is None or not self._requires_approval_of(request.data.name):
            return {"approve": True}
        answer: Any = self._tool.on_approval_request(request)
        return await answer if inspect.isawaitable(answer) else answer

    def _requires_approval_of(self, name: str) -> bool:
        setting: Any = self._tool.tool_config.get("require_approval", "always")
        if isinstance(setting, str):
            return setting != "never"
        never = (setting or {}).get("never") or {}
        return name not in (never.get("tool_names") or ())


async def refuse_hosted_calls(result: Any, book: Rulebook) -> None:
    """Record calls that the provider has made although the rules deny them.

    Such a call is over when the answer arrives; it can only be recorded, or abort the run under "raise".
    """
    for response in getattr(result, "raw_responses", None) or ():
        for item in getattr(response, "output", None) or ():
            kind = str(getattr(item, "type", ""))
            if kind == "mcp_call" or kind in _HOSTED_CALLS:
                guard = ToolGuard(_hosted_facts(kind, item), book)
                await guard.report(getattr(result, "context_wrapper", None))


def _hosted_facts(kind: str, item: Any) -> ToolFacts:
    if kind == "mcp_call":
        return hosted_mcp_facts(str(item.server_label), str(item.name))
    return ToolFacts(_HOSTED_CALLS[kind], schema=schema_of(None))
