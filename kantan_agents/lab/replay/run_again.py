"""Runs an agent with the recorded input, options and context."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from agents import RunConfig, RunState
from agents.memory import SessionABC

from kantan_agents.agent import Agent
from kantan_agents.agent.running.identity import begun_inside
from kantan_agents.lab.replay.recording import earlier_items
from kantan_agents.tool_rules import EXPLICIT
from kantan_agents.traces.capture import RunRecord
from kantan_agents.traces.capture.canonical import copied


async def run_again(
    agent: Agent[Any], recorded: RunRecord, context: dict[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Run an agent as recorded, streamed if that was; ``options`` override the recorded ones."""
    agent = agent.like_recorded(recorded)
    given = await _input_of(recorded, agent)
    chosen = {**recorded.options, **_session_of(recorded), **options}
    with begun_inside() if recorded.is_nested else nullcontext():
        if not recorded.is_streamed:
            return await agent.run_async(given, context, **chosen)
        async with agent.stream(given, context, **chosen) as stream:
            async for _ in stream:
                pass
        return stream.context


async def _input_of(recorded: RunRecord, agent: Agent[Any]) -> Any:
    if recorded.state is not None:
        state: dict[str, Any] = copied(recorded.state)
        return await RunState.from_json(agent.sdk_agent, state)
    given = recorded.begins_with
    if given is None or isinstance(given, str):
        return given or ""
    return [copied(item) for item in given]


def _session_of(recorded: RunRecord) -> dict[str, Any]:
    if not recorded.has_session:
        return {}
    return {"session": RecordedSession(earlier_items(recorded))}


def context_of(recorded: RunRecord, more: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a context with the recorded explicit tool rules; values in ``more`` override them."""
    context = dict(more or {})
    for name, rules in recorded.rules.layers:
        if name == EXPLICIT:
            context.setdefault("tool_rules", copied(rules))
    return context


def untraced(config: Any) -> Any:
    """Return a ``run_config`` without tracing; an invalid one is unchanged."""
    if isinstance(config, RunConfig):
        return dataclasses.replace(config, tracing_disabled=True)
    if config is None or isinstance(config, Mapping):
        return {**(config or {}), "tracing_disabled": True}
    return config


class RecordedSession(SessionABC):
    """A session in memory with the items at a recorded run's start."""

    session_id = "replay"
    groups_traces = False  # its id is not the id of a conversation
    session_settings = None

    def __init__(self, items: Sequence[Any]) -> None:
        self._items = list(items)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the items, or the latest of them."""
        return list(self._items) if limit is None else self._items[-limit:] if limit else []

    async def add_items(self, items: list[Any]) -> None:
        """Add items."""
        self._items += items

    async def pop_item(self) -> Any:
        """Remove the latest item and return it."""
        return self._items.pop() if self._items else None

    async def clear_session(self) -> None:
        """Remove all items."""
        self._items.clear()
