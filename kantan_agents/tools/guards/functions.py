"""Function tools: rules apply before each call, failures are counted after it."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from types import MethodType
from typing import Any

from agents import FunctionTool
from agents.tool import resolve_function_tool_failure_error_function

from kantan_agents.core.interception import (
    ToolCall,
    checking_rules,
    make_call,
    record_failure,
    record_refusal,
    run_tool_call,
    tool_call_notes,
)
from kantan_agents.core.pipeline import Run, current_run
from kantan_agents.models.plain_data import packed, unpacked
from kantan_agents.tool_rules import ToolFacts
from kantan_agents.tools.facts import facts_of
from kantan_agents.tools.guards.failures import (
    DEFAULT_ANSWERS,
    Failures,
    answering_with,
    answers_by_default,
    mark_answer,
    uncertainty,
)
from kantan_agents.tools.guards.guard import Rulebook, ToolGuard
from kantan_agents.tools.guards.invalid_calls import (
    malformed_arguments,
    record_invalid_call,
    record_valid_call,
)
from kantan_agents.tools.guards.repeated_failures import end_call, record_failed_call, record_working_call
from kantan_agents.tools.guards.wrong_arguments import describe_wrong_arguments
from kantan_agents.tools.unshown_tools import record_call

_LONGEST = 8_192
"""Longest schema that is cached, in bytes."""


class GuardedInvoker:
    """Replaces ``on_invoke_tool`` and applies the rules before each call."""

    __slots__ = ("_failures", "_guard", "_invoke", "_signature", "_tool", "original")

    def __init__(self, tool: FunctionTool, original: FunctionTool, guard: ToolGuard) -> None:
        self._tool = tool
        self.original = original
        self._guard = guard
        self._invoke: Callable[..., Awaitable[Any]] = tool.on_invoke_tool
        self._failures: Failures | None = None
        self._signature: inspect.Signature | None = None

    @property
    def __signature__(self) -> inspect.Signature:
        # At each call, the SDK inspects the invoker's first parameter. Few of many tools are called;
        # inspecting all adds 45 % to a first turn (`python -m benchmarks --only once_100`).
        if self._signature is None:
            self._signature = inspect.signature(self._invoke)
        return self._signature

    async def __call__(self, tool_context: Any, arguments: str) -> Any:
        """Return the result, or the reason for a denial."""
        record_call(self._guard.facts.name)
        for note in tool_call_notes:
            note(getattr(tool_context, "tool_call_id", ""))
        run = current_run.get()
        if run is None or not run.is_watched:
            output = await self._run(tool_context, arguments)
        else:
            output = await self._run_watched(run, tool_context, arguments)
        return output if run is None else end_call(run, self._guard.facts.name, tool_context, output)

    async def _run_watched(self, run: Run, tool_context: Any, arguments: str) -> Any:
        call = ToolCall(
            run,
            agent=getattr(getattr(tool_context, "agent", None), "name", None) or run.agent.name,
            tool=self.original,
            name=self._guard.facts.name,
            arguments=arguments,
            call_id=getattr(tool_context, "tool_call_id", ""),
            tool_context=tool_context,
        )
        if not run.tool_calls:
            return await run_tool_call(run, call, self._run_call)
        if self._failures is None:
            self._failures = Failures(self._tool, self._invoke)
        return await run_tool_call(run, call, self._run_raising, self._failures.settle)

    async def _run_call(self, call: ToolCall) -> Any:
        refusal = await self._refusal_of(call)
        if refusal is not None:
            return refusal
        return await make_call(call, lambda: self._invoke_timed(call.tool_context, call.arguments))

    async def _run_raising(self, call: ToolCall) -> Any:
        refusal = await self._refusal_of(call)
        if refusal is not None:
            return refusal
        invoke = self._failures.invoke if self._failures is not None else self._invoke
        try:
            output = await make_call(call, lambda: invoke(call.tool_context, call.arguments))
        except asyncio.CancelledError:
            self._record_timeout(call.tool_context)
            raise
        except Exception as error:
            if answers_by_default(self.original, call.tool_context):
                describe_wrong_arguments(error, self._tool, call.arguments)
            record_failure(call, error)
            self._record_failed_call(call.tool_context, error)
            raise
        if call.refusal is not None:  # by its gate
            self._record_failed_call(call.tool_context, call.refusal)
            return output
        record_working_call(call.run, self._guard.facts.name, call.tool_context)
        mark_answer(self._tool, call.tool_context, is_answer=False)
        return output

    async def _run(self, tool_context: Any, arguments: str) -> Any:
        refusal = await self._refusal(tool_context, arguments)
        return await self._invoke_timed(tool_context, arguments) if refusal is None else refusal

    async def _invoke_timed(self, tool_context: Any, arguments: str) -> Any:
        try:
            return await self._invoke(tool_context, arguments)
        except asyncio.CancelledError:
            self._record_timeout(tool_context)
            raise

    def answer_failure(self, tool_context: Any, error: Exception) -> Any:
        """Return the answer of the user's tool."""
        self._record_failed_call(tool_context, error)
        answer = resolve_function_tool_failure_error_function(self.original, tool_context)
        if answer is None:
            return None
        if answer in DEFAULT_ANSWERS:
            mark_answer(self._tool, tool_context)
            uncertain = uncertainty(error)
            if uncertain is not None:  # the SDK's answer suggests that the model try again
                return str(uncertain)
            if describe_wrong_arguments(error, self._tool, getattr(tool_context, "tool_arguments", "")):
                # Newer versions of the SDK omit the error from the answer.
                return f"An error occurred while running the tool. Please try again. Error: {error}"
        return answer(tool_context, error)

    def _record_timeout(self, tool_context: Any) -> None:
        # The SDK cancels a tool that exceeds its timeout. If the run itself is canceled, nothing follows.
        if self._tool.timeout_seconds is not None:
            record_failed_call(current_run.get(), self._guard.facts.name, tool_context, reason="it timed out")

    def _record_failed_call(self, tool_context: Any, error: Exception) -> None:
        name = self._guard.facts.name
        record_failed_call(current_run.get(), name, tool_context, reason=str(error), error=error)

    async def _refusal_of(self, call: ToolCall) -> str | None:
        with checking_rules(call):
            return await self._refusal(call.tool_context, call.arguments)

    async def _refusal(self, tool_context: Any, arguments: str) -> str | None:
        # For a tool outside Agent.tools, the SDK does not check again whether it is enabled.
        switched_on = is_switched_on(self._tool) and await self._is_enabled_now(tool_context)
        refusal = await self._guard.refusal(tool_context, arguments, switched_on=switched_on)
        invalid = malformed_arguments(self._guard.facts.name, self._tool.params_json_schema, arguments)
        if invalid is None:
            record_valid_call()
        else:
            record_invalid_call(invalid)
        if refusal is not None:
            record_failed_call(current_run.get(), self._guard.facts.name, tool_context, reason=refusal)
        if refusal is None and invalid is not None:
            record_refusal(invalid)
            refusal = f"{invalid}\nThe reason is: {invalid.reason}."
        if refusal is not None:
            mark_answer(self._tool, tool_context)
        return refusal

    async def _is_enabled_now(self, tool_context: Any) -> bool:
        # On a plain SDK agent, the SDK checks the user's own tool instead of this copy.
        enabled = self.original.is_enabled
        if self._guard.book is not None or not callable(enabled):
            return True
        answer: Any = enabled(tool_context, getattr(tool_context, "agent", None))  # type: ignore[arg-type]
        return bool(await answer if inspect.isawaitable(answer) else answer)

    @property
    def book(self) -> Rulebook | None:
        """The guarded tool's agent."""
        return self._guard.book

    @property
    def facts(self) -> ToolFacts:
        """Facts for the rules."""
        return self._guard.facts

    def __getattr__(self, attribute: str) -> Any:
        # The SDK sets attributes on invokers. Binding is excluded: bound again to a copy, the original
        # invoker would replace this guard.
        if attribute == "__agents_bind_function_tool__" or attribute in GuardedInvoker.__slots__:
            raise AttributeError(attribute)  # the slots are not set yet while an instance is copied
        return getattr(self._invoke, attribute)


def is_switched_on(tool: FunctionTool) -> bool:
    """Return whether a guarded tool and its original are enabled."""
    original: FunctionTool | None = getattr(tool.on_invoke_tool, "original", None)
    return bool(tool.is_enabled) and (original is None or bool(original.is_enabled))


def guard_function(
    tool: FunctionTool, book: Rulebook | None = None, fields: Mapping[str, Any] | None = None
) -> FunctionTool:
    """Return a guarded copy; ``fields`` is an earlier ``vars(tool)``."""
    if isinstance(tool.on_invoke_tool, GuardedInvoker):
        return tool
    guarded = copy_function(tool, fields)
    invoker = GuardedInvoker(guarded, tool, ToolGuard(facts_of(guarded), book))
    guarded.on_invoke_tool = invoker
    return answering_with(guarded, invoker.answer_failure)


def copy_function(tool: FunctionTool, fields: Mapping[str, Any] | None = None) -> FunctionTool:
    """Return a copy equal to ``copy.copy(tool)``, faster.

    The SDK converts the schema of each copy to its strict form again; this converts equal schemas once.
    ``fields`` is an earlier ``vars(tool)``, ignored for tools that the SDK copies.
    """
    # `copy.copy` adds 24 % to the first turn of 100 tools (`python -m benchmarks --only once_100`).

    # Subclasses may define their own copying, and the SDK binds a bound method to the copy.
    if type(tool) is not FunctionTool or type(tool.on_invoke_tool) is MethodType:
        return copy.copy(tool)
    plain = FunctionTool.__new__(FunctionTool)
    vars(plain).update(vars(tool) if fields is None else fields)
    schema = _strict(plain.params_json_schema) if plain.strict_json_schema else None
    if schema is None:
        return copy.copy(plain)
    is_strict, plain.strict_json_schema = plain.strict_json_schema, False
    copied = copy.copy(plain)
    copied.strict_json_schema, copied.params_json_schema = is_strict, schema
    return copied


def _strict(schema: Any) -> dict[str, Any] | None:
    """Return None if the schema is not plain data or too long."""
    data = packed(schema)
    return unpacked(_strict_schema(data)) if data is not None and len(data) <= _LONGEST else None


@functools.lru_cache(maxsize=512)
def _strict_schema(schema: bytes) -> bytes:
    strict = FunctionTool("any", "", unpacked(schema), _not_called).params_json_schema
    data = packed(strict)
    if data is None:
        raise TypeError(f"the SDK has converted a schema to something other than JSON: {strict!r}")
    return data


async def _not_called(*_: Any) -> None:
    """Replaces the function of a tool if only its schema is needed."""
