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
from kantan_agents.tool_rules import RuleLayers, ToolFacts
from kantan_agents.tools.facts import facts_of
from kantan_agents.tools.guards.guard import Guard, GuardedInvoker, Rulebook
from kantan_agents.tools.guards.hosted import rule_hosted_mcp
from kantan_agents.tools.guards.mistakes import begin_turn, note_mistake, usable_names
from kantan_agents.tools.not_in_view import kept_back, shown_from_now_on


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


def list_tools(
    wrapper: Any,
    tools: list[Tool],
    layers: RuleLayers,
    book: Rulebook | None,
    before: Sequence[Tool] = (),
) -> list[Tool]:
    """Return the tools the rules let the model see, and remember what was hidden from it.

    Those in ``before`` are shown in any case, and first.

    Raises:
        KantanAgentsError: E10, E21, the model has made nothing but mistakes for too many turns.
    """
    begin_turn()
    if layers.permits_all:
        shown = [*before, *tools] if before else tools
        _listings[wrapper] = Listing(shown, (), book)
        return shown
    shown = list(before)
    hidden: list[Tool] = []
    for tool in tools:
        ruled = rule_hosted_mcp(tool, layers, book) if isinstance(tool, HostedMCPTool) else tool
        if ruled is None or (ruled is tool and not layers.decide_tool(_facts(tool)).allowed):
            hidden.append(tool)
        else:
            shown.append(ruled)
    _listings[wrapper] = Listing(shown, hidden, book)
    return shown


def list_none(wrapper: Any) -> list[Tool]:
    """Return what the model sees of an agent that has no tools, and forget those of the agent before it.

    Raises:
        KantanAgentsError: E10, E21, as ``list_tools``.
    """
    begin_turn()
    _listings.pop(wrapper, None)
    return []


def listing_of(wrapper: Any) -> Listing | None:
    """Return what was listed last for a run of the SDK."""
    return _listings.get(wrapper)


def _facts(tool: Tool) -> ToolFacts:
    invoker = getattr(tool, "on_invoke_tool", None)
    return invoker.facts if isinstance(invoker, GuardedInvoker) else facts_of(tool)


async def answer_missing(wrapper: Any, tool_name: str, call_id: str = "") -> str:
    """Return what a model is told that called a function tool it was not shown.

    A tool that the rules hide is a violation (E8), recorded and answered by the policy. Any other name
    is a mistake of the model's (E21). Both times it is told which tools it may use, the nearest names first
    where there are many, and observers are told of a call that was refused; what it was called with the SDK
    does not say.

    Raises:
        KantanAgentsError: The violation, if the policy is to raise it.
    """
    listing = listing_of(wrapper) or Listing((), (), None)
    usable = usable_names(_names(listing.shown), tool_name)
    call = _missing_call(wrapper, tool_name, call_id)
    unseen = kept_back(tool_name)
    for tool in (*listing.hidden, unseen) if unseen is not None else listing.hidden:
        facts = _facts(tool)
        if tool_name in facts.names:
            refusal = await _refused(Guard(facts, listing.book), wrapper, call)
            if refusal is not None:
                return f"{refusal}\n{usable}"
    if unseen is not None:
        return shown_from_now_on(tool_name)
    unknown = UnknownToolError(tool_name=tool_name)
    note_mistake(unknown)
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


def _names(tools: Iterable[Tool]) -> list[str]:
    return [getattr(tool, "qualified_name", tool.name) for tool in tools]
