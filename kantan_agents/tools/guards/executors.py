"""Guards tools of any kind."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from agents import (
    ApplyPatchTool,
    AsyncComputer,
    ComputerProvider,
    ComputerTool,
    CustomTool,
    FunctionTool,
    LocalShellTool,
    ShellTool,
    Tool,
)
from agents.editor import ApplyPatchResult

from kantan_agents.core.interception import ToolCall, make_call
from kantan_agents.tools.facts import facts_of
from kantan_agents.tools.guards.described_calls import apply_rules, check_unchanged, describe_call, input_of
from kantan_agents.tools.guards.functions import guard_function
from kantan_agents.tools.guards.guard import Rulebook, ToolGuard

ToolT = TypeVar("ToolT")
_ACTIONS = ("screenshot", "click", "double_click", "scroll", "type", "wait", "move", "keypress", "drag")


def guard(tool: Tool, book: Rulebook | None = None) -> Tool:
    """Return a copy that applies the rules before each call; tools at the provider stay unchanged."""
    if isinstance(tool, FunctionTool):
        return guard_function(tool, book)
    if isinstance(tool, CustomTool):
        return _with_executor(tool, "on_invoke_tool", _custom_executor(tool, ToolGuard(facts_of(tool), book)))
    if isinstance(tool, (ShellTool, LocalShellTool)):
        if tool.executor is None:  # the tool runs in a container of the provider
            return tool
        return _with_executor(tool, "executor", _shell_executor(tool, ToolGuard(facts_of(tool), book)))
    if isinstance(tool, ApplyPatchTool):
        return _with_executor(tool, "editor", _GuardedEditor(tool, ToolGuard(facts_of(tool), book)))
    if isinstance(tool, ComputerTool):
        return _guard_computer(tool, ToolGuard(facts_of(tool), book))
    return tool


def _with_executor(tool: ToolT, field: str, executor: Any) -> ToolT:
    guarded = copy.copy(tool)
    setattr(guarded, field, executor)
    return guarded


async def _made(call: ToolCall, run: Callable[[], Any]) -> Any:
    async def made() -> Any:
        value = run()
        return await value if inspect.isawaitable(value) else value

    return await make_call(call, made)


def _custom_executor(tool: CustomTool, guard: ToolGuard) -> Callable[..., Awaitable[Any]]:
    invoke = tool.on_invoke_tool

    async def guarded_executor(tool_context: Any, text: str) -> Any:
        async def run(call: ToolCall) -> Any:
            given = input_of(call)
            refusal = await apply_rules(call, lambda: guard.refusal(tool_context, {"input": given}))
            return refusal if refusal is not None else await _made(call, lambda: invoke(tool_context, given))

        call_id = getattr(tool_context, "tool_call_id", None)
        return await describe_call(tool, tool_context, {"input": text}, call_id, run)

    return guarded_executor


def _shell_executor(tool: ShellTool | LocalShellTool, guard: ToolGuard) -> Callable[..., Awaitable[Any]]:
    execute: Any = tool.executor

    async def guarded_executor(request: Any) -> Any:
        action = request.data.action
        if hasattr(action, "commands"):
            arguments: dict[str, Any] = {"commands": list(action.commands)}
        else:
            # local_shell sends one command as a list of words.
            arguments = {"command": " ".join(action.command)}

        async def run(call: ToolCall) -> Any:
            check_unchanged(call, arguments)
            refusal = await apply_rules(call, lambda: guard.refusal(request.ctx_wrapper, arguments))
            return refusal if refusal is not None else await _made(call, lambda: execute(request))

        call_id = getattr(request.data, "call_id", None)
        return await describe_call(tool, request.ctx_wrapper, arguments, call_id, run)

    return guarded_executor


class _GuardedEditor:
    def __init__(self, tool: ApplyPatchTool, guard: ToolGuard) -> None:
        self._tool = tool
        self._editor: Any = tool.editor
        self._guard = guard

    async def create_file(self, operation: Any) -> Any:
        return await self._edit(self._editor.create_file, operation)

    async def update_file(self, operation: Any) -> Any:
        return await self._edit(self._editor.update_file, operation)

    async def delete_file(self, operation: Any) -> Any:
        return await self._edit(self._editor.delete_file, operation)

    async def _edit(self, edit: Callable[[Any], Any], operation: Any) -> Any:
        arguments = {"type": operation.type, "path": operation.path, "diff": operation.diff}
        if operation.move_to:
            arguments["move_to"] = operation.move_to

        async def run(call: ToolCall) -> Any:
            check_unchanged(call, arguments)
            refusal = await apply_rules(call, lambda: self._refusal(operation))
            if refusal is not None:
                return ApplyPatchResult(status="failed", output=refusal)
            return await _made(call, lambda: edit(operation))

        return await describe_call(self._tool, operation.ctx_wrapper, arguments, None, run)

    async def _refusal(self, operation: Any) -> str | None:
        for path in (operation.path, operation.move_to):  # an update may also move the file
            arguments = {"type": operation.type, "path": path, "diff": operation.diff}
            refusal = await self._guard.refusal(operation.ctx_wrapper, arguments) if path else None
            if refusal is not None:
                return refusal
        return None

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # not set yet while an instance is copied
            raise AttributeError(attribute)
        return getattr(self._editor, attribute)


class _GuardedComputer(AsyncComputer):
    """A screenshot cannot show a denial, so it aborts the run."""

    def __init__(self, computer: Any, tool: ComputerTool[Any], guard: ToolGuard, run_context: Any) -> None:
        self.guarded = computer
        for name in _ACTIONS:
            action = getattr(computer, name, None)
            if callable(action):
                setattr(self, name, _guarded_action(tool, name, action, guard, run_context))

    @property
    def environment(self) -> Any:
        return self.guarded.environment

    @property
    def dimensions(self) -> Any:
        return self.guarded.dimensions

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_") or attribute == "guarded":  # not set yet while an instance is copied
            raise AttributeError(attribute)
        return getattr(self.guarded, attribute)


# Each instance gets the actions, with the guarded computer's signatures.
_GuardedComputer.__abstractmethods__ = frozenset()


def _guarded_action(
    tool: ComputerTool[Any], name: str, action: Any, guard: ToolGuard, run_context: Any
) -> Any:
    arguments = {"action": name}

    @functools.wraps(action)
    async def guarded_action(*args: Any, **kwargs: Any) -> Any:
        async def run(call: ToolCall) -> Any:
            check_unchanged(call, arguments)
            await apply_rules(call, lambda: guard.require(run_context, arguments))
            return await make_call(call, made)

        async def made() -> Any:
            result = action(*args, **kwargs)
            return await result if inspect.isawaitable(result) else result

        return await describe_call(tool, run_context, arguments, None, run)

    return guarded_action


def _guard_computer(tool: ComputerTool[Any], guard: ToolGuard) -> ComputerTool[Any]:
    given = tool.computer
    facts = guard.facts
    # The SDK holds the factory as long as the tool, so it must not hold the agent.
    find_book = weakref.ref(guard.book) if guard.book is not None else None

    async def create(*, run_context: Any) -> Any:
        made: Any = given
        if isinstance(given, ComputerProvider):
            made = given.create(run_context=run_context)
        elif callable(given):
            made = given(run_context=run_context)
        made = await made if inspect.isawaitable(made) else made
        kind: Any = _GuardedComputer  # to a type checker, the class is abstract
        book = find_book() if find_book is not None else None
        return kind(made, tool, ToolGuard(facts, book), run_context)

    async def dispose(*, run_context: Any, computer: Any) -> None:
        if isinstance(given, ComputerProvider) and given.dispose is not None:
            done = given.dispose(run_context=run_context, computer=computer.guarded)
            if inspect.isawaitable(done):
                await done

    provider: Any = ComputerProvider(create=create, dispose=dispose)
    return dataclasses.replace(tool, computer=provider)
