"""The context of runs paused for an approval."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from agents import RunState

from kantan_agents.agent.bridge.guarded_agent import guard_agent
from kantan_agents.traces.metadata import chosen_metadata

CHOSEN: Final = "kantan_agents_chosen"
"""Key of ``PausedContext.chosen`` in a state's ``trace``."""


class PausedContext(dict[str, Any]):
    """A paused run's context without ``result``: the SDK cannot write a result that contains itself."""

    caller_context: dict[str, Any]
    chosen: Mapping[str, Any] = MappingProxyType({})


def guard_resumed(state: RunState[Any, Any]) -> None:
    """Guard a resumed run's current agent; handoffs may not reach it."""
    guard_agent(getattr(state, "_current_agent", None))


def owner_in(state: RunState[Any, Any]) -> Any:
    """Return the Agent that a state continues with, if this library created it."""
    return getattr(getattr(state, "_current_agent", None), "owner", None)


def continue_with(state: RunState[Any, Any], agent: Any) -> None:
    """Replace a state's agent by one with the same tools and handoffs.

    The SDK finds approved calls and decisions by agent, so these change too.
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
    """Return the choice recorded for a paused run."""
    context = getattr(getattr(state, "_context", None), "context", None)
    if isinstance(context, PausedContext):
        return context.chosen
    extra = getattr(getattr(state, "_trace_state", None), "extra", None)
    chosen = extra.get(CHOSEN) if isinstance(extra, Mapping) else None
    # No other key: a stored state may have been changed, and these win over the standard ones.
    return chosen_metadata(chosen) if isinstance(chosen, Mapping) else {}


def context_of(state: RunState[Any, Any]) -> dict[str, Any]:
    """Return the context of a state, empty if it is not a dict."""
    # The SDK has no public access to the context of a state.
    context = getattr(getattr(state, "_context", None), "context", None)
    if isinstance(context, PausedContext):
        return context.caller_context
    return context if isinstance(context, dict) else {}
