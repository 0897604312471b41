"""Which tool calls of a run wait for an approval, besides those whose tools say so themselves.

The SDK asks the tools it was given for a turn. In a run in which somebody else has a say they are given as
copies that ask there too.
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

from kantan_agents.errors import InvalidOptionError
from kantan_agents.interception import end_run_with
from kantan_agents.pipeline import Run

_POLICIES = object()
_COPIES = object()


class ApprovalPolicy(Protocol):
    """Says which calls need an approval."""

    @property
    def asks_while_called(self) -> bool:
        """Whether it asks by itself when a tool is called here, so that nothing has to wait."""
        ...

    def concerns(self, tool: str) -> bool:
        """Whether calls of a tool of this name may need one."""
        ...

    async def needs_approval(self, agent: str, tool: str, arguments: str, call_id: str) -> bool:
        """Whether this call needs one."""
        ...


def add_approval_policy(run: Run, policy: ApprovalPolicy) -> None:
    """Have ``policy`` asked about the tool calls of a run."""
    run.state.setdefault(_POLICIES, []).append(policy)


async def with_approvals(run: Run | None, agent: str, tools: list[Tool]) -> list[Tool]:
    """Return the tools of a turn, those that a policy of the run concerns as copies that ask it.

    Raises:
        InvalidOptionError: E75, a tool needs an approval and runs at the provider without one.
    """
    policies: list[ApprovalPolicy] = run.state.get(_POLICIES, []) if run is not None else []
    if run is None or not policies:
        return tools
    # The same copy each time: the SDK compares tools by identity when a run is resumed.
    copies: dict[Any, tuple[Tool, Tool]] = run.state.setdefault(_COPIES, {})
    asking: list[Tool] = []
    for tool in tools:
        if not _runs_here(tool):
            await _check_needs_none(agent, tool, policies)
        concerned = [policy for policy in policies if policy.concerns(tool.name)]
        concerned = [policy for policy in concerned if not policy.asks_while_called]
        if not concerned or not can_wait(tool):
            asking.append(tool)
            continue
        known = copies.get((agent, id(tool)))
        if known is None:
            known = copies[agent, id(tool)] = (tool, _asking(tool, _Question(run, agent, tool, concerned)))
        asking.append(known[1])
    return asking


async def _check_needs_none(agent: str, tool: Tool, policies: list[ApprovalPolicy]) -> None:
    """Refuse a tool whose calls never come by here, if one needs an approval."""
    for policy in policies:
        for name in _names_of(tool):
            # A policy that looks at single calls has to say without one.
            if policy.concerns(name) and await policy.needs_approval(agent, name, "", ""):
                raise unasked(name, "it runs at the provider, and no call of it comes by here")


def unasked(tool: str, reason: str) -> InvalidOptionError:
    """Return the error for a tool whose approval nobody can be asked for."""
    return InvalidOptionError(
        option="policy", reason=f"no approval can be asked for the tool {tool}: {reason}"
    )


def _names_of(tool: Tool) -> list[str]:
    """Return the names that calls of a tool may have, as far as they are known."""
    if not isinstance(tool, HostedMCPTool):
        return [tool.name]
    config = tool.tool_config
    if config.get("require_approval", "always") == "always" and tool.on_approval_request is None:
        return []  # the provider asks for an approval itself, and the run waits for it
    allowed: Any = config.get("allowed_tools") or []
    names = allowed.get("tool_names", []) if isinstance(allowed, dict) else allowed
    server = f"mcp__{config['server_label']}"
    return [tool.name, server, *names, *(f"{server}__{name}" for name in names)]


def _runs_here(tool: Tool) -> bool:
    if isinstance(tool, (ShellTool, LocalShellTool)):
        return tool.executor is not None  # not in a container of the provider
    return isinstance(tool, (FunctionTool, CustomTool, ApplyPatchTool, ComputerTool))


def can_wait(tool: Any) -> bool:
    """Whether the SDK can have the calls of a tool wait for an approval."""
    return _runs_here(tool) and not isinstance(tool, (LocalShellTool, ComputerTool))


def _asking(tool: Any, question: _Question) -> Tool:
    copied = copy.copy(tool)
    copied.needs_approval = question.ask
    return copied  # type: ignore[no-any-return]


class _Question:
    """Stands where a tool says which of its calls need an approval."""

    def __init__(self, run: Run, agent: str, tool: Any, policies: list[ApprovalPolicy]) -> None:
        self._run = run
        self._agent = agent
        self._tool = tool.name
        self._own: bool | Callable[..., Any] = tool.needs_approval
        self._policies = policies

    async def ask(self, wrapper: Any, given: Any, call_id: str) -> bool:
        """Whether the tool itself or a policy wants an approval for this call."""
        own = self._own(wrapper, given, call_id) if callable(self._own) else self._own
        if await own if inspect.isawaitable(own) else own:
            return True
        try:
            for policy in self._policies:
                if await policy.needs_approval(self._agent, self._tool, _as_text(given), call_id):
                    return True
        except Exception as error:
            end_run_with(self._run, error)  # the SDK would make another error of it
            raise
        return False


def _as_text(given: Any) -> str:
    if isinstance(given, str):
        return given
    if hasattr(given, "commands"):
        given = {"commands": list(given.commands)}
    elif hasattr(given, "path"):
        given = {"type": given.type, "path": given.path, "diff": given.diff}
    return json.dumps(given, ensure_ascii=False, default=str)
