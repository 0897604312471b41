"""Lists a turn's tools, and answers calls of others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import attrs
from agents import (
    ApplyPatchTool,
    ComputerTool,
    CustomTool,
    FunctionTool,
    HostedMCPTool,
    LocalShellTool,
    ModelBehaviorError,
    ShellTool,
    Tool,
    get_current_span,
)

from kantan_agents.core.interception import (
    ToolCall,
    active_agent,
    capture_begun,
    capture_hidden_tool,
    checking_rules,
    emit_refusal,
    result_of_gone,
)
from kantan_agents.core.pipeline import current_run
from kantan_agents.errors import KantanAgentsError, UnknownToolError
from kantan_agents.tool_rules import RuleLayers, ToolFacts
from kantan_agents.tools.facts import facts_of, facts_of_listed, servers_of
from kantan_agents.tools.guards.guard import Rulebook, ToolGuard
from kantan_agents.tools.guards.hosted import rule_hosted_mcp
from kantan_agents.tools.guards.invalid_calls import begin_turn, record_invalid_call, usable_tools_sentence
from kantan_agents.tools.guards.repeated_failures import UnknownCall, end_call, record_failed_call
from kantan_agents.tools.server_names import Surroundings, server_of
from kantan_agents.tools.unshown_tools import show_and_explain, unshown_tool


@attrs.frozen(eq=False)
class TurnListing:
    """A turn's tools; ``book`` is None for a plain SDK agent."""

    shown: Sequence[Tool]
    hidden: Sequence[Tool]
    book: Rulebook | None


ResolveTool = Callable[[FunctionTool, Any, Any, RuleLayers], Awaitable["FunctionTool | None"]]
"""Takes the guarded tool, the SDK's agent, its context and the rules; returns the tool to show in this
turn, or None."""

_EACH_TURN = "__kantan_each_turn__"
_ERROR_WORDS = (
    (ComputerTool, "without a computer tool"),
    (LocalShellTool, "without a local shell tool"),
    (ShellTool, "shell"),
    (ApplyPatchTool, "without an apply_patch tool"),
)

# By the SDK's context of a run; nested runs have their own.
_listings: WeakKeyDictionary[Any, TurnListing] = WeakKeyDictionary()


def list_tools(
    wrapper: Any,
    tools: list[Tool],
    layers: RuleLayers,
    book: Rulebook | None,
    before: Sequence[Tool] = (),
) -> list[Tool]:
    """Return the permitted tools, after ``before``; E10 or E21 after too many invalid turns."""
    begin_turn()
    if layers.permits_all:
        shown = [*before, *tools] if before else tools
        _listings[wrapper] = TurnListing(shown, (), book)
        return shown
    shown = list(before)
    hidden: list[Tool] = []
    around: Surroundings | None = None
    for tool in tools:
        ruled: Tool | None = tool
        facts = facts_of_listed(tool)
        if isinstance(tool, HostedMCPTool):
            around = around or _surroundings_of(tools)
            ruled, facts = rule_hosted_mcp(tool, layers, book, around), facts_of(tool, around)
        if ruled is None or (ruled is tool and not layers.decide_tool(facts).allowed):
            hidden.append(tool)
        else:
            shown.append(ruled)
    _listings[wrapper] = TurnListing(shown, hidden, book)
    return shown


def _surroundings_of(tools: Sequence[Tool]) -> Surroundings:
    local = (tool for tool in tools if server_of(tool) is None and not isinstance(tool, HostedMCPTool))
    names = frozenset(name for tool in local for name in facts_of_listed(tool).names)
    return Surroundings(names, servers_of(tools))


def list_none(wrapper: Any) -> list[Tool]:
    """Return no tools, and forget the previous agent's; raises like ``list_tools``."""
    begin_turn()
    _listings.pop(wrapper, None)
    return []


def listing_of(wrapper: Any) -> TurnListing | None:
    """Return a run's latest listing."""
    return _listings.get(wrapper)


async def answer_missing(wrapper: Any, tool_name: str, call_id: str = "") -> str:
    """Return the answer for a function tool that the model was not shown.

    A hidden tool is a violation (E8), raised under "raise". A tool that retrieval has not shown is shown from
    the next turn on. In a durable run, a lost tool's earlier result is the answer. Any other name is an
    invalid call (E21). The SDK does not pass the arguments.
    """
    _forget_invented_name()
    listing = listing_of(wrapper) or TurnListing((), (), None)
    usable = usable_tools_sentence(_names(listing.shown), tool_name)
    call = _missing_call(wrapper, tool_name, call_id)
    unseen = unshown_tool(tool_name)
    for tool in (*listing.hidden, unseen) if unseen is not None else listing.hidden:
        facts = facts_of_listed(tool)
        if tool_name in facts.names:
            if call is not None:
                capture_hidden_tool(call, tool)
            refusal = await _refused(ToolGuard(facts, listing.book), wrapper, call)
            if refusal is not None:
                return _counted(call, refusal, f"{refusal}\n{usable}")
    if unseen is not None:
        return show_and_explain(tool_name)
    if call is not None:
        gone = ToolGuard(ToolFacts((tool_name,), guessed=True), listing.book)
        made = await result_of_gone(call, partial(_refused, gone, wrapper, call))
        if made is not None:
            return made
    unknown = UnknownToolError(tool_name=tool_name)
    record_invalid_call(unknown)
    left_out = _left_out(listing.book, tool_name)
    if call is not None and left_out is not None:
        capture_hidden_tool(call, left_out)
    await _emit_refusal(call, unknown)
    return f"{unknown}\n{usable}"


def _left_out(book: Rulebook | None, tool_name: str) -> Any:
    """Return the agent's tool that this turn lacks, such as a disabled one."""
    tools = getattr(book, "unguarded_tools", ())
    return next((tool for tool in tools if getattr(tool, "name", None) == tool_name), None)


def _counted(call: ToolCall | None, refusal: str, text: str) -> str:
    if call is None:
        return text
    record_failed_call(call.run, call.name, UnknownCall(call.call_id), reason=refusal)
    return str(end_call(call.run, call.name, UnknownCall(call.call_id), text))


def _forget_invented_name() -> None:
    """Remove a missing tool's name from the SDK's span if the run records no sensitive data."""
    run, span = current_run.get(), get_current_span()
    if run is None or run.records_sensitive_data or span is None or not span.error:
        return
    span.set_error({"message": span.error["message"], "data": None})


def _missing_call(wrapper: Any, tool_name: str, call_id: str) -> ToolCall | None:
    run = current_run.get()
    if run is None:
        return None
    agent = active_agent.get() or run.agent.name
    call = ToolCall(run, agent, None, tool_name, "", call_id, wrapper)
    capture_begun(call)
    return call


async def _refused(guard: ToolGuard, wrapper: Any, call: ToolCall | None) -> str | None:
    try:
        with checking_rules(call):
            return await guard.refusal(wrapper, "" if call is None else call.arguments)
    finally:
        if call is not None and call.refusal is not None:
            await _emit_refusal(call, call.refusal)


async def _emit_refusal(call: ToolCall | None, error: Exception) -> None:
    if call is not None:
        await emit_refusal(call, error)


async def hidden_tool_called(error: BaseException) -> KantanAgentsError | None:
    """Return the violation behind an SDK error after a call of a hidden tool.

    The SDK can answer such calls only for function tools; for others it aborts the run, and only the error's
    message names the tool.
    """
    wrapper = getattr(getattr(error, "run_data", None), "context_wrapper", None)
    listing = listing_of(wrapper) if isinstance(error, ModelBehaviorError) and wrapper is not None else None
    for tool in listing.hidden if listing is not None else ():
        words = _error_words(tool)
        if words and words in str(error).lower():
            guard = ToolGuard(facts_of_listed(tool), listing.book if listing is not None else None)
            try:
                await guard.require(wrapper, {})
            except KantanAgentsError as violation:
                await _emit_refusal(_missing_call(wrapper, tool.name, f"{tool.name}_refused"), violation)
                return violation
    return None


def _error_words(tool: Tool) -> str | None:
    if isinstance(tool, HostedMCPTool):
        return f"server label {tool.tool_config.get('server_label')} not found".lower()
    if isinstance(tool, CustomTool):
        return f"tool {tool.name} not found".lower()
    return next((words for kind, words in _ERROR_WORDS if isinstance(tool, kind)), None)


def _names(tools: Iterable[Tool]) -> list[str]:
    return [getattr(tool, "qualified_name", tool.name) for tool in tools]


def show_each_turn(tool: FunctionTool, shown: ResolveTool) -> None:
    """Call ``shown`` each turn for the tool's form."""
    setattr(tool, _EACH_TURN, shown)


def shown_each_turn(tool: FunctionTool) -> ResolveTool | None:
    """Return the registered function."""
    found: ResolveTool | None = getattr(tool, _EACH_TURN, None)
    return found


def changes_each_turn(tool: FunctionTool) -> bool:
    """Return whether a tool is registered with ``show_each_turn``."""
    return hasattr(tool, _EACH_TURN)


async def resolve_each_turn(agent: Any, wrapper: Any, tools: list[Tool], layers: RuleLayers) -> list[Tool]:
    """Apply ``show_each_turn``."""
    if not any(hasattr(tool, _EACH_TURN) for tool in tools):  # the usual case
        return tools
    shown: list[Tool] = []
    for tool in tools:
        ask: ResolveTool | None = getattr(tool, _EACH_TURN, None)
        now: Tool | None = tool
        if ask is not None and isinstance(tool, FunctionTool):
            now = await ask(tool, agent, wrapper, layers)
        if now is not None:
            shown.append(now)
    return shown
