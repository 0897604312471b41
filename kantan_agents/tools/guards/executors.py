"""Guards a tool of any kind; executors of shells, patches and custom tools apply the rules first."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from agents import ApplyPatchTool, ComputerTool, CustomTool, FunctionTool, LocalShellTool, ShellTool, Tool
from agents.editor import ApplyPatchResult

from kantan_agents.core.interception import ToolCall, make_call
from kantan_agents.tools.facts import facts_of
from kantan_agents.tools.guards.computer import guard_computer
from kantan_agents.tools.guards.described_calls import apply_rules, check_unchanged, describe_call, input_of
from kantan_agents.tools.guards.functions import guard_function
from kantan_agents.tools.guards.guard import Guard, Rulebook

ToolT = TypeVar("ToolT")


def guard(tool: Tool, book: Rulebook | None = None) -> Tool:
    """Return a copy of a tool that applies the rules in force before each call.

    Tools that run on the provider's servers are returned unchanged; for them, the rules decide whether they
    are shown (see ``listing``). Tools that are already guarded are returned unchanged as well.
    """
    if isinstance(tool, FunctionTool):
        return guard_function(tool, book)
    if isinstance(tool, CustomTool):
        return _with_executor(tool, "on_invoke_tool", _custom_executor(tool, Guard(facts_of(tool), book)))
    if isinstance(tool, (ShellTool, LocalShellTool)):
        if tool.executor is None:  # the tool runs in a container of the provider
            return tool
        return _with_executor(tool, "executor", _shell_executor(tool, Guard(facts_of(tool), book)))
    if isinstance(tool, ApplyPatchTool):
        return _with_executor(tool, "editor", GuardedEditor(tool, Guard(facts_of(tool), book)))
    if isinstance(tool, ComputerTool):
        return guard_computer(tool, Guard(facts_of(tool), book))
    return tool


def _with_executor(tool: ToolT, field: str, executor: Any) -> ToolT:
    guarded = copy.copy(tool)
    setattr(guarded, field, executor)
    return guarded


def _custom_executor(tool: CustomTool, guard: Guard) -> Callable[..., Awaitable[Any]]:
    invoke = tool.on_invoke_tool

    async def guarded_executor(tool_context: Any, text: str) -> Any:
        async def run(call: ToolCall) -> Any:
            given = input_of(call)
            refusal = await apply_rules(call, lambda: guard.refusal(tool_context, {"input": given}))
            return refusal if refusal is not None else await _made(call, lambda: invoke(tool_context, given))

        call_id = getattr(tool_context, "tool_call_id", None)
        return await describe_call(tool, tool_context, {"input": text}, call_id, run)

    return guarded_executor


def _shell_executor(tool: ShellTool | LocalShellTool, guard: Guard) -> Callable[..., Awaitable[Any]]:
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


class GuardedEditor:
    """Wraps the editor of an apply_patch tool and applies the rules before each operation."""

    def __init__(self, tool: ApplyPatchTool, guard: Guard) -> None:
        self._tool = tool
        self._editor: Any = tool.editor
        self._guard = guard

    async def create_file(self, operation: Any) -> Any:
        """Create a file, if the rules allow it."""
        return await self._edit(self._editor.create_file, operation)

    async def update_file(self, operation: Any) -> Any:
        """Change a file, if the rules allow it."""
        return await self._edit(self._editor.update_file, operation)

    async def delete_file(self, operation: Any) -> Any:
        """Delete a file, if the rules allow it."""
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


async def _made(call: ToolCall, run: Callable[[], Any]) -> Any:
    async def made() -> Any:
        value = run()
        return await value if inspect.isawaitable(value) else value

    return await make_call(call, made)
