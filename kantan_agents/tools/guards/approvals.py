"""Approval policies of a run, in addition to the tools' own ``needs_approval``.

In a run with policies, the SDK gets copies of tools whose ``needs_approval`` also queries the policies.
"""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable
from typing import Any, Protocol

from agents import (
    ApplyPatchTool,
    ComputerTool,
    CustomTool,
    FunctionTool,
    HostedMCPTool,
    LocalShellTool,
    ShellTool,
    Tool,
)

from kantan_agents.core.interception import end_run_with
from kantan_agents.core.pipeline import Run
from kantan_agents.errors import InvalidOptionError
from kantan_agents.tool_rules import ToolFacts
from kantan_agents.tools.facts import facts_of, facts_of_listed, label_of
from kantan_agents.tools.server_names import hosted_mcp_facts, server_prefixes

_POLICIES = object()
_COPIES = object()


class ApprovalPolicy(Protocol):
    """Decides which calls need an approval."""

    @property
    def asks_while_called(self) -> bool:
        """Whether it requests approval during the call, without a pause."""
        ...

    def concerns(self, tool: ToolFacts) -> bool:
        """Whether calls may need an approval."""
        ...

    def may_concern_tools_of(self, server: str) -> bool:
        """Whether calls of a hosted MCP server's unlisted tools may need an approval."""
        ...

    async def needs_approval(self, agent: str, tool: ToolFacts, arguments: str, call_id: str) -> bool:
        """Whether this call needs an approval."""
        ...


def add_approval_policy(run: Run, policy: ApprovalPolicy) -> None:
    """Add a policy to a run."""
    run.state.setdefault(_POLICIES, []).append(policy)


async def with_approvals(run: Run | None, agent: str, tools: list[Tool]) -> list[Tool]:
    """Return copies that query the policies; E75 if the provider would run a tool without its approval."""
    policies: list[ApprovalPolicy] = run.state.get(_POLICIES, []) if run is not None else []
    if run is None or not policies:
        return tools
    # The same copies each turn: a resumed run compares tools by identity.
    copies: dict[Any, tuple[Tool, Tool]] = run.state.setdefault(_COPIES, {})
    checked: list[Tool] = []
    for tool in tools:
        if not _runs_here(tool):
            await _check_hosted(agent, tool, policies)
        facts = facts_of_listed(tool)
        concerned = [policy for policy in policies if policy.concerns(facts) and not policy.asks_while_called]
        if not concerned or not can_wait(tool):
            checked.append(tool)
            continue
        known = copies.get((agent, id(tool)))
        if known is None:
            known = copies[agent, id(tool)] = (
                tool,
                _with_check(tool, _ApprovalCheck(run, agent, tool, facts, concerned)),
            )
        checked.append(known[1])
    return checked


async def _check_hosted(agent: str, tool: Tool, policies: list[ApprovalPolicy]) -> None:
    for policy in policies:
        for facts in _known_tools(tool):
            # A policy that depends on the arguments must decide without them.
            if policy.concerns(facts) and await policy.needs_approval(agent, facts, "", ""):
                raise approval_impossible(
                    facts.name, "it runs at the provider, so its calls cannot be intercepted"
                )
        if isinstance(tool, HostedMCPTool) and _lists_no_tools(tool):
            prefixes = server_prefixes(label_of(tool))
            if any(map(policy.may_concern_tools_of, prefixes)):
                reason = 'the server lists no tools; set "allowed_tools", or "require_approval" to "always"'
                raise approval_impossible(f"{prefixes[0]}*", reason)


def approval_impossible(tool: str, reason: str) -> InvalidOptionError:
    """Return the error for a tool whose approval cannot be requested."""
    return InvalidOptionError(
        option="policy", reason=f"no approval can be requested for the tool {tool}: {reason}"
    )


def _known_tools(tool: Tool) -> list[ToolFacts]:
    if not isinstance(tool, HostedMCPTool):
        return [facts_of(tool)]
    if _asks_itself(tool):
        return []
    return [facts_of(tool), *tools_of_hosted(tool)]


def tools_of_hosted(tool: HostedMCPTool) -> list[ToolFacts]:
    """Return the known tools of a hosted MCP server: its ``allowed_tools``."""
    allowed: Any = tool.tool_config.get("allowed_tools") or []
    names = allowed.get("tool_names") or [] if isinstance(allowed, dict) else allowed
    return [hosted_mcp_facts(label_of(tool), str(name)) for name in names]


def _lists_no_tools(tool: HostedMCPTool) -> bool:
    return not _asks_itself(tool) and not tools_of_hosted(tool)


def _asks_itself(tool: HostedMCPTool) -> bool:
    # The provider requests an approval itself, and the run pauses for it.
    asks = tool.tool_config.get("require_approval", "always")
    return asks == "always" and tool.on_approval_request is None


def _runs_here(tool: Tool) -> bool:
    if isinstance(tool, (ShellTool, LocalShellTool)):
        return tool.executor is not None  # otherwise it runs in a container of the provider
    return isinstance(tool, (FunctionTool, CustomTool, ApplyPatchTool, ComputerTool))


def can_wait(tool: Any) -> bool:
    """Return whether the SDK can pause a run until a call is approved."""
    return _runs_here(tool) and not isinstance(tool, (LocalShellTool, ComputerTool))


def _with_check(tool: Any, question: _ApprovalCheck) -> Tool:
    copied = copy.copy(tool)
    copied.needs_approval = question.ask
    return copied  # type: ignore[no-any-return]


class _ApprovalCheck:
    """Queries the tool, then the policies."""

    def __init__(
        self, run: Run, agent: str, tool: Any, facts: ToolFacts, policies: list[ApprovalPolicy]
    ) -> None:
        self._run = run
        self._agent = agent
        self._tool = facts
        self._own: bool | Callable[..., Any] = tool.needs_approval
        self._policies = policies

    async def ask(self, wrapper: Any, given: Any, call_id: str) -> bool:
        own = self._own(wrapper, given, call_id) if callable(self._own) else self._own
        if await own if inspect.isawaitable(own) else own:
            return True
        try:
            for policy in self._policies:
                if await policy.needs_approval(self._agent, self._tool, _as_text(given), call_id):
                    return True
        except Exception as error:
            end_run_with(self._run, error)  # the SDK would replace it with another error
            raise
        return False


def _as_text(given: Any) -> str:
    if isinstance(given, str):
        return given
    if hasattr(given, "commands"):
        given = {"commands": list(given.commands)}
    elif hasattr(given, "path"):
        moved = getattr(given, "move_to", None)
        described = {"type": given.type, "path": given.path, "diff": given.diff}
        given = {**described, "move_to": moved} if moved else described
    return json.dumps(given, ensure_ascii=False, default=str)
