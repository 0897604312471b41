"""Exceptions of function tools in a run with tool middleware.

The SDK converts an exception inside the tool's function; here, the middleware sees it first.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from typing import Any

import agents.tool
from agents import FunctionTool
from agents.tool import (
    default_tool_error_function,
    maybe_invoke_function_tool_failure_error_function,
    resolve_function_tool_failure_error_function,
    set_function_tool_failure_error_function,
)

from kantan_agents.core.interception import ToolCall, ToolNext, pending_error
from kantan_agents.errors import (
    EditRejectedError,
    FileChangedError,
    FileForbiddenError,
    FileNotUsableError,
    InvalidPatternError,
    OutsideRootError,
    ProtectedPathError,
)

# Toolkit errors, whose messages are written for the model.
_FOR_THE_MODEL = (
    OutsideRootError,
    FileNotUsableError,
    EditRejectedError,
    FileChangedError,
    InvalidPatternError,
    FileForbiddenError,
    ProtectedPathError,
)

# Private. Without it, an answer as the result aborts the run if the tool declares its output.
_MARK: str | None = getattr(agents.tool, "_DEFAULT_FAILURE_HANDLED_ATTR", None)


class UncertainCallError(Exception):
    """A tool may or may not have been executed, so the model must not simply try again."""


def uncertainty(error: BaseException | None) -> UncertainCallError | None:
    """Return the ``UncertainCallError`` among an exception and its causes."""
    seen: set[int] = set()  # an exception may be its own cause
    while error is not None and id(error) not in seen:
        if isinstance(error, UncertainCallError):
            return error
        seen.add(id(error))
        error = error.__cause__
    return None


def mark_answer(tool: FunctionTool, tool_context: Any, *, is_answer: bool = True) -> None:
    """Set for the SDK whether the next output need not match the declared output."""
    if _MARK is not None and tool.output_json_schema is not None:
        setattr(tool_context, _MARK, is_answer)


def answer_of_toolkit(tool_context: Any, error: Exception) -> str:
    """Return the SDK's answer, with a toolkit error's message.

    Newer versions of the SDK omit it.
    """
    if isinstance(error, _FOR_THE_MODEL):
        return f"An error occurred while running the tool. Please try again. Error: {error}"
    return default_tool_error_function(tool_context, error)


DEFAULT_ANSWERS = (default_tool_error_function, answer_of_toolkit)


def answers_by_default(tool: FunctionTool, tool_context: Any) -> bool:
    """Return whether the user set no error function."""
    return resolve_function_tool_failure_error_function(tool, tool_context) in DEFAULT_ANSWERS


def answering_with(tool: FunctionTool, answer: Callable[[Any, Exception], Any]) -> FunctionTool:
    """Let ``answer`` handle exceptions that do not abort the run."""
    if tool._use_default_failure_error_function or tool._failure_error_function is not None:
        set_function_tool_failure_error_function(tool, answer)
    return tool


class Failures:
    """Handles exceptions around middleware; ``invoke`` lets them propagate."""

    def __init__(self, tool: FunctionTool, invoke: Callable[..., Awaitable[Any]]) -> None:
        self._tool = tool
        # The SDK's invoker can be bound to a tool without error function. A custom invoker raises anyway.
        bind = getattr(invoke, "__agents_bind_function_tool__", None)
        self._is_answered = bind is not None
        self.invoke: Callable[..., Awaitable[Any]] = invoke
        if bind is not None:
            self.invoke = bind(set_function_tool_failure_error_function(copy.copy(tool), None))
        # Private. Without it, only the span's error is lost.
        self._report = getattr(invoke, "_on_handled_error", None)

    async def settle(self, call: ToolCall, call_next: ToolNext) -> Any:
        """Call the middleware, and convert an exception that it has not handled."""
        mark_answer(self._tool, call.tool_context)  # until the tool itself returns a result
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
        text = None
        if self._is_answered:
            text = await maybe_invoke_function_tool_failure_error_function(
                function_tool=self._tool, context=call.tool_context, error=error
            )
        if text is None:
            raise error
        return text
