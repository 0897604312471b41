"""Runs that wait for an approval: their state must go into JSON and find its context again."""

from __future__ import annotations

from typing import Any

from agents import RunState

from kantan_agents.bridge.guarded_agent import guard_agent


class PausedContext(dict[str, Any]):
    """The context a paused run's state carries: the caller's, without the result of that very run.

    The SDK writes a dict context into the state's JSON as it is, and a ``RunResult`` that contains
    itself has no JSON.

    Attributes:
        caller_context: The caller's own dict, for a state that is resumed in the same process.
    """

    caller_context: dict[str, Any]


def detach_result(result: Any, context: dict[str, Any]) -> None:
    """Give a paused ``result`` a context that can be serialised; others are left alone."""
    wrapper = getattr(result, "context_wrapper", None)
    if wrapper is None or not getattr(result, "interruptions", None):
        return
    paused = PausedContext({key: value for key, value in context.items() if key != "result"})
    paused.caller_context = context
    wrapper.context = paused


def guard_resumed(input: Any) -> None:
    """Guard the agent that a resumed run goes on with; it need not be one that ours hand over to."""
    if isinstance(input, RunState):
        guard_agent(getattr(input, "_current_agent", None))


def context_of(state: RunState[Any, Any]) -> dict[str, Any]:
    """Return the context a state is to be resumed with; an empty one where it carries none."""
    # There is no public way to the context of a state.
    context = getattr(getattr(state, "_context", None), "context", None)
    if isinstance(context, PausedContext):
        return context.caller_context
    return context if isinstance(context, dict) else {}
