"""What becomes of the exception of a tool that has middleware around it.

The SDK makes a text for the model of it, inside the very function that runs the tool. With middleware
around, that happens outside of it: the middleware meets the exception, and what none of them answers
becomes what the SDK would have made of it.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from typing import Any

import agents.tool
from agents import FunctionTool
from agents.tool import (
    maybe_invoke_function_tool_failure_error_function,
    set_function_tool_failure_error_function,
)

from kantan_agents.interception import ToolCall, ToolNext, pending_error

# Private. Without it, an answer in place of the result ends the run of a tool that declares its output.
_MARK: str | None = getattr(agents.tool, "_DEFAULT_FAILURE_HANDLED_ATTR", None)


def mark_answer(tool: FunctionTool, tool_context: Any, *, is_answer: bool = True) -> None:
    """Tell the SDK whether what comes is an answer in place of a tool's result.

    Such an answer need not fit what the tool declares as its output.
    """
    if _MARK is not None and tool.output_json_schema is not None:
        setattr(tool_context, _MARK, is_answer)


class Failures:
    """The failures of one function tool.

    Attributes:
        invoke: Runs the tool, and raises what it raises.
    """

    __slots__ = ("_is_answered", "_report", "_tool", "invoke")

    def __init__(self, tool: FunctionTool, invoke: Callable[..., Awaitable[Any]]) -> None:
        self._tool = tool
        # What the SDK makes a text with can be bound to another tool; an invoker written by hand
        # raises by itself, and the SDK leaves it at that.
        bind = getattr(invoke, "__agents_bind_function_tool__", None)
        self._is_answered = bind is not None
        self.invoke: Callable[..., Awaitable[Any]] = invoke
        if bind is not None:
            self.invoke = bind(set_function_tool_failure_error_function(copy.copy(tool), None))
        # Private, and nothing but a mark on the tool's span is lost without it.
        self._report = getattr(invoke, "_on_handled_error", None)

    async def settle(self, call: ToolCall, call_next: ToolNext) -> Any:
        """Stand around the middleware, and answer for the tool if none of them has."""
        mark_answer(self._tool, call.tool_context)  # until the tool itself has returned something
        try:
            output = await call_next(call)
        except Exception as error:
            if error is not call.error or pending_error(call.run) is not None:
                raise
            mark_answer(self._tool, call.tool_context, is_answer=False)
            output = await self._answer(error, call)
        else:
            if not isinstance(output, str):
                mark_answer(self._tool, call.tool_context, is_answer=False)
        if call.error is not None and self._report is not None:
            self._report(self._tool, call.error, call.arguments, call.tool_context)
        return output

    async def _answer(self, error: Exception, call: ToolCall) -> Any:
        """Return what the SDK would tell the model."""
        text = None
        if self._is_answered:
            text = await maybe_invoke_function_tool_failure_error_function(
                function_tool=self._tool, context=call.tool_context, error=error
            )
        if text is None:
            raise error
        return text
