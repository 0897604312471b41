"""The guard of computer tools: applies the rules before each action."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import weakref
from typing import Any

from agents import AsyncComputer, ComputerProvider, ComputerTool

from kantan_agents.core.interception import ToolCall, make_call
from kantan_agents.tools.guards.described_calls import apply_rules, check_unchanged, describe_call
from kantan_agents.tools.guards.guard import Guard

_ACTIONS = ("screenshot", "click", "double_click", "scroll", "type", "wait", "move", "keypress", "drag")


class GuardedComputer(AsyncComputer):
    """Wraps the computer of a run and applies the rules before each action.

    An action returns a screenshot, so a refusal cannot be reported to the model and ends the run instead.
    """

    def __init__(self, computer: Any, tool: ComputerTool[Any], guard: Guard, run_context: Any) -> None:
        self.guarded = computer
        for name in _ACTIONS:
            action = getattr(computer, name, None)
            if callable(action):
                setattr(self, name, _guarded_action(tool, name, action, guard, run_context))

    @property
    def environment(self) -> Any:
        """The environment of the guarded computer."""
        return self.guarded.environment

    @property
    def dimensions(self) -> Any:
        """The dimensions of the guarded computer."""
        return self.guarded.dimensions

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_") or attribute == "guarded":  # not set yet while an instance is copied
            raise AttributeError(attribute)
        return getattr(self.guarded, attribute)


# The actions are set on each instance, with the signatures of the guarded computer.
GuardedComputer.__abstractmethods__ = frozenset()


def _guarded_action(tool: ComputerTool[Any], name: str, action: Any, guard: Guard, run_context: Any) -> Any:
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


def guard_computer(tool: ComputerTool[Any], guard: Guard) -> ComputerTool[Any]:
    """Return a copy of a computer tool with a guarded computer, whether fixed or created for each run."""
    given = tool.computer
    facts = guard.facts
    # The SDK holds the factory for as long as the tool exists, so it must not hold the agent.
    find_book = weakref.ref(guard.book) if guard.book is not None else None

    async def create(*, run_context: Any) -> Any:
        made: Any = given
        if isinstance(given, ComputerProvider):
            made = given.create(run_context=run_context)
        elif callable(given):
            made = given(run_context=run_context)
        made = await made if inspect.isawaitable(made) else made
        kind: Any = GuardedComputer  # to a type checker, the class is abstract
        book = find_book() if find_book is not None else None
        return kind(made, tool, Guard(facts, book), run_context)

    async def dispose(*, run_context: Any, computer: Any) -> None:
        if isinstance(given, ComputerProvider) and given.dispose is not None:
            done = given.dispose(run_context=run_context, computer=computer.guarded)
            if inspect.isawaitable(done):
                await done

    provider: Any = ComputerProvider(create=create, dispose=dispose)
    return dataclasses.replace(tool, computer=provider)
