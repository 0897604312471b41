"""Runs paused for an approval: the context in their state, and its retrieval on resumption."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from agents import RunState

from kantan_agents.agent.bridge.guarded_agent import guard_agent
from kantan_agents.traces.metadata import chosen_metadata

CHOSEN: Final = "kantan_agents_chosen"
"""Key of ``PausedContext.chosen`` in the ``trace`` of a state's JSON."""


class PausedContext(dict[str, Any]):
    """The context in the state of a paused run: a copy of the caller's without ``result``.

    The SDK writes a dict context into the state's JSON, and it cannot write a ``RunResult`` that contains
    itself.

    Attributes:
        caller_context: The caller's own dict, used if the same process resumes the state.
        chosen: The metadata keys that record the choice of a rollout or a command for the run.
    """

    caller_context: dict[str, Any]
    chosen: Mapping[str, Any] = MappingProxyType({})


def guard_resumed(state: RunState[Any, Any]) -> None:
    """Guard the agent that a resumed run continues with; handoffs may not reach it."""
    guard_agent(getattr(state, "_current_agent", None))


def owner_in(state: RunState[Any, Any]) -> Any:
    """Return the Agent that a state continues with; None if this library did not create its agent."""
    return getattr(getattr(state, "_current_agent", None), "owner", None)


def continue_with(state: RunState[Any, Any], agent: Any) -> None:
    """Let a state continue with an Agent that has the same tools and handoffs as the old one.

    The SDK finds approved calls by the agent of their items and, in newer versions, of their decisions, so
    these get the new agent too.
    """
    before, after = state._current_agent, agent.sdk_agent
    response, step = state._last_processed_response, state._current_step
    lists: list[Iterable[Any]] = [
        state._generated_items,
        state._session_items,
        getattr(response, "new_items", ()),
        getattr(response, "interruptions", ()),
        getattr(step, "interruptions", ()),
    ]
    for item in (item for items in lists for item in items):
        if item.agent is before:
            item.agent, item._agent_ref = after, weakref.ref(after)
    decisions: dict[Any, Any] = getattr(state._context, "_approvals", {})
    for key in [key for key in decisions if getattr(key, "agent", None) is before]:
        decisions[type(key)(after, key.tool_key)] = decisions.pop(key)
    # The SDK has no public way to change the agents of a state.
    state._current_agent = after
    if state._starting_agent is before:
        state._starting_agent = after


def chosen_in(state: RunState[Any, Any]) -> Mapping[str, Any]:
    """Return the choice recorded for a paused run; empty if the state has none."""
    context = getattr(getattr(state, "_context", None), "context", None)
    if isinstance(context, PausedContext):
        return context.chosen
    extra = getattr(getattr(state, "_trace_state", None), "extra", None)
    chosen = extra.get(CHOSEN) if isinstance(extra, Mapping) else None
    # No other key: a stored state may have been changed, and these win over the standard ones.
    return chosen_metadata(chosen) if isinstance(chosen, Mapping) else {}


def context_of(state: RunState[Any, Any]) -> dict[str, Any]:
    """Return the context to resume a state with; empty if the state has no dict context."""
    # The SDK has no public access to the context of a state.
    context = getattr(getattr(state, "_context", None), "context", None)
    if isinstance(context, PausedContext):
        return context.caller_context
    return context if isinstance(context, dict) else {}
