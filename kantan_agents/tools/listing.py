"""What a model is shown of an agent's tools, and what it is told about those it is not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import attrs
from agents import (
    ApplyPatchTool,
    ComputerTool,
    CustomTool,
    HostedMCPTool,
    LocalShellTool,
    ModelBehaviorError,
    ShellTool,
    Tool,
)

from kantan_agents.errors import KantanAgentsError, UnknownToolError
from kantan_agents.interception import ToolCall, asking_agent, asking_rules, told_refusal
from kantan_agents.pipeline import current_run
from kantan_agents.tool_rules import RuleLayers, ToolFacts, decide_tool
from kantan_agents.tools.facts import facts_of
from kantan_agents.tools.guard import Guard, GuardedInvoker, Rulebook
from kantan_agents.tools.hosted import rule_hosted_mcp


@attrs.frozen(eq=False)
class Listing:
    """The tools of one turn.

    Attributes:
        shown: What the model sees.
        hidden: What the rules keep from it.
        book: The agent they were listed for; None for an agent of the SDK.
    """

    shown: Sequence[Tool]
    hidden: Sequence[Tool]
    book: Rulebook | None


_ERROR_WORDS = (
    (ComputerTool, "without a computer tool"),
    (LocalShellTool, "without a local shell tool"),
    (ShellTool, "shell"),
    (ApplyPatchTool, "without an apply_patch tool"),
)

# By the SDK's context of a run, nested runs having their own.
_listings: WeakKeyDictionary[Any, Listing] = WeakKeyDictionary()


def list_tools(wrapper: Any, tools: list[Tool], layers: RuleLayers, book: Rulebook | None) -> list[Tool]:
    """Return the tools the rules let the model see, and remember what was hidden from it."""
    if layers.rules.permits_all:
        _listings[wrapper] = Listing(tools, (), book)
        return tools
    shown: list[Tool] = []
    hidden: list[Tool] = []
    for tool in tools:
        ruled = rule_hosted_mcp(tool, layers, book) if isinstance(tool, HostedMCPTool) else tool
        if ruled is None or (ruled is tool and not decide_tool(layers.rules, _facts(tool)).allowed):
            hidden.append(tool)
        else:
            shown.append(ruled)
    _listings[wrapper] = Listing(shown, hidden, book)
    return shown


def listing_of(wrapper: Any) -> Listing | None:
    """Return what was listed last for a run of the SDK."""
    return _listings.get(wrapper)


def _facts(tool: Tool) -> ToolFacts:
    invoker = getattr(tool, "on_invoke_tool", None)
    return invoker.facts if isinstance(invoker, GuardedInvoker) else facts_of(tool)


async def answer_missing(wrapper: Any, tool_name: str, call_id: str = "") -> str:
    """Return what a model is told that called a function tool it was not shown.

    A tool that the rules hide is a violation (E8), recorded and answered by the policy. Any other name
    is a mistake of the model's (E21). Both times it is told which tools it may use, and observers are told
    of a call that was refused; what it was called with the SDK does not say.

    Raises:
        KantanAgentsError: The violation, if the policy is to raise it.
    """
    listing = listing_of(wrapper) or Listing((), (), None)
    usable = f"Tools you may use: {_names(listing.shown) or 'none'}."
    call = _missing_call(wrapper, tool_name, call_id)
    for tool in listing.hidden:
        facts = _facts(tool)
        if tool_name in facts.names:
            refusal = await _refused(Guard(facts, listing.book), wrapper, call)
            if refusal is not None:
                return f"{refusal}\n{usable}"
    unknown = UnknownToolError(tool_name=tool_name)
    await _tell(call, unknown)
    return f"{unknown}\n{usable}"


def _missing_call(wrapper: Any, tool_name: str, call_id: str) -> ToolCall | None:
    run = current_run.get()
    if run is None:
        return None
    agent = asking_agent.get() or run.agent.name
    return ToolCall(run, agent, None, tool_name, "", call_id, wrapper)


async def _refused(guard: Guard, wrapper: Any, call: ToolCall | None) -> str | None:
    try:
        with asking_rules(call):
            return await guard.refusal(wrapper, "")
    finally:
        if call is not None and call.refusal is not None:
            await _tell(call, call.refusal)


async def _tell(call: ToolCall | None, error: Exception) -> None:
    if call is not None:
        await told_refusal(call, error)


async def hidden_tool_called(error: BaseException) -> KantanAgentsError | None:
    """Return the violation behind an error of the SDK, if it comes from a call to a hidden tool.

    For tools that are no function tools the SDK has no answer to give and ends the run. Its error names
    the tool in words only.
    """
    wrapper = getattr(getattr(error, "run_data", None), "context_wrapper", None)
    listing = listing_of(wrapper) if isinstance(error, ModelBehaviorError) and wrapper is not None else None
    for tool in listing.hidden if listing is not None else ():
        words = _words(tool)
        if words and words in str(error).lower():
            guard = Guard(_facts(tool), listing.book if listing is not None else None)
            try:
                await guard.require(wrapper, {})
            except KantanAgentsError as violation:
                await _tell(_missing_call(wrapper, tool.name, f"{tool.name}_refused"), violation)
                return violation
    return None


def _words(tool: Tool) -> str | None:
    if isinstance(tool, HostedMCPTool):
        return f"server label {tool.tool_config.get('server_label')} not found".lower()
    if isinstance(tool, CustomTool):
        return f"tool {tool.name} not found".lower()
    return next((words for kind, words in _ERROR_WORDS if isinstance(tool, kind)), None)


def _names(tools: Iterable[Tool]) -> str:
    return ", ".join(getattr(tool, "qualified_name", tool.name) for tool in tools)
