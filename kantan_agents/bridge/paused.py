"""Runs paused for an approval: the context in their state, and how it is found on resumption."""

from __future__ import annotations

from typing import Any

from agents import RunState

from kantan_agents.bridge.guarded_agent import guard_agent


class PausedContext(dict[str, Any]):
    """The context in the state of a paused run: a copy of the caller's without ``result``.

    The SDK writes a dict context into the JSON of the state, and a ``RunResult`` that contains itself cannot
    be written.

    Attributes:
        caller_context: The caller's own dict, used when the state is resumed in the same process.
    """

    caller_context: dict[str, Any]


def guard_resumed(input: Any) -> None:
    """Guard the agent that a resumed run continues with; it may be unreachable through hand-offs."""
    if isinstance(input, RunState):
        guard_agent(getattr(input, "_current_agent", None))


def context_of(state: RunState[Any, Any]) -> dict[str, Any]:
    """Return the context to resume a state with; empty if the state has no dict context."""
    # The SDK has no public access to the context of a state.
    context = getattr(getattr(state, "_context", None), "context", None)
    if isinstance(context, PausedContext):
        return context.caller_context
    return context if isinstance(context, dict) else {}
