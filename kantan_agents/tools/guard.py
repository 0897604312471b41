"""The check at the moment a tool is called; whatever the model was shown before."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from typing import Any

from agents import FunctionTool, custom_span

from kantan_agents.context import empty_tool_rules
from kantan_agents.errors import KantanAgentsError, ToolNotAllowedError
from kantan_agents.log import get_logger
from kantan_agents.tool_rules import ToolRules

logger = get_logger("kantan_agents.tools")

_SAYS_NOTHING = empty_tool_rules()
_PERMITS_ALL = ToolRules()


def rules_in_force(context: Any) -> ToolRules:
    """Return the rules of a run's context as they stand now.

    Raises:
        InvalidToolRulesError: E20, somebody has put a mistake into them meanwhile.
    """
    rules = context.get("tool_rules") if isinstance(context, dict) else None
    if not rules or rules == _SAYS_NOTHING:  # the usual case, and asked several times a run
        return _PERMITS_ALL
    return ToolRules.parse(rules)


class GuardedInvoker:
    """Stands where a function tool's ``on_invoke_tool`` stood and asks the rules first.

    Everything else of the tool (approval, timeout, guardrails, failure handling) stays the SDK's: the
    original invoker runs unchanged behind this one.
    """

    __slots__ = ("_invoke", "_tool", "original")

    def __init__(self, tool: FunctionTool, original: FunctionTool) -> None:
        self._tool = tool
        self.original = original
        self._invoke: Callable[..., Awaitable[Any]] = tool.on_invoke_tool

    async def __call__(self, tool_context: Any, arguments: str) -> Any:
        """Run the tool, or return why it may not run: the model reads that as its result."""
        name = self._tool.name
        refusal: KantanAgentsError | None
        try:
            # A tool kept outside Agent.tools is not looked at again by the SDK before it runs.
            switched_on = is_switched_on(self._tool)
            permitted = switched_on and rules_in_force(tool_context.context).permits(name)
            refusal = None if permitted else ToolNotAllowedError(tool_name=name)
        except KantanAgentsError as error:
            refusal = error
        if refusal is None:
            return await self._invoke(tool_context, arguments)
        logger.info("tool call refused", tool=name, code=refusal.code)
        with custom_span("tool_refused", {"tool": name, "code": refusal.code}):
            return str(refusal)

    def __getattr__(self, attribute: str) -> Any:
        # The SDK leaves marks on invokers (a sync function, say). Binding is not one of them: bound
        # again to a copy, the original invoker would take this guard's place.
        if attribute == "__agents_bind_function_tool__":
            raise AttributeError(attribute)
        return getattr(self._invoke, attribute)


def is_switched_on(tool: FunctionTool) -> bool:
    """Return whether a guarded tool, and the user's own tool behind it, have not been disabled."""
    original: FunctionTool | None = getattr(tool.on_invoke_tool, "original", None)
    return bool(tool.is_enabled) and (original is None or bool(original.is_enabled))


def guard(tool: FunctionTool) -> FunctionTool:
    """Return a copy of ``tool`` that asks the rules in force before each call."""
    guarded = copy.copy(tool)
    guarded.on_invoke_tool = GuardedInvoker(guarded, tool)
    return guarded
