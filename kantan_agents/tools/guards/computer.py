"""The guard of a computer tool: every action on the computer asks the rules first."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import weakref
from typing import Any

from agents import AsyncComputer, ComputerProvider, ComputerTool

from kantan_agents.interception import ToolCall
from kantan_agents.tools.guards.described_calls import ask_rules, check_unchanged, describe_call
from kantan_agents.tools.guards.guard import Guard

_ACTIONS = ("screenshot", "click", "double_click", "scroll", "type", "wait", "move", "keypress", "drag")


class GuardedComputer(AsyncComputer):
    """Stands where the computer of a run stood.

    What an action returns is a screenshot, so a refusal cannot be told to the model: it ends the run.
    """

    def __init__(self, computer: Any, tool: ComputerTool[Any], guard: Guard, run_context: Any) -> None:
        self.guarded = computer
        for name in _ACTIONS:
            action = getattr(computer, name, None)
            if callable(action):
                setattr(self, name, _asking_first(tool, name, action, guard, run_context))

    @property
    def environment(self) -> Any:
        """What the guarded computer says."""
        return self.guarded.environment

    @property
    def dimensions(self) -> Any:
        """What the guarded computer says."""
        return self.guarded.dimensions

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_") or attribute == "guarded":  # one that is being copied
            raise AttributeError(attribute)
        return getattr(self.guarded, attribute)


# Its actions are set on each instance, with the signature of the computer behind it.
GuardedComputer.__abstractmethods__ = frozenset()


def _asking_first(tool: ComputerTool[Any], name: str, action: Any, guard: Guard, run_context: Any) -> Any:
    arguments = {"action": name}

    @functools.wraps(action)
    async def guarded_action(*args: Any, **kwargs: Any) -> Any:
        async def run(call: ToolCall) -> Any:
            check_unchanged(call, arguments)
            await ask_rules(call, lambda: guard.require(run_context, arguments))
            result = action(*args, **kwargs)
            return await result if inspect.isawaitable(result) else result

        return await describe_call(tool, run_context, arguments, None, run)

    return guarded_action


def guard_computer(tool: ComputerTool[Any], guard: Guard) -> ComputerTool[Any]:
    """Return a copy of a computer tool whose computer, given or made for each run, is guarded."""
    given = tool.computer
    facts = guard.facts
    # The SDK keeps what makes a computer for as long as the tool lives, so it must not hold the agent.
    find_book = weakref.ref(guard.book) if guard.book is not None else None

    async def create(*, run_context: Any) -> Any:
        made: Any = given
        if isinstance(given, ComputerProvider):
            made = given.create(run_context=run_context)
        elif callable(given):
            made = given(run_context=run_context)
        made = await made if inspect.isawaitable(made) else made
        kind: Any = GuardedComputer  # abstract by its declaration only
        book = find_book() if find_book is not None else None
        return kind(made, tool, Guard(facts, book), run_context)

    async def dispose(*, run_context: Any, computer: Any) -> None:
        if isinstance(given, ComputerProvider) and given.dispose is not None:
            done = given.dispose(run_context=run_context, computer=computer.guarded)
            if inspect.isawaitable(done):
                await done

    provider: Any = ComputerProvider(create=create, dispose=dispose)
    return dataclasses.replace(tool, computer=provider)
