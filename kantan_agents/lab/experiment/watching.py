"""The actions and usage of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import attrs

from kantan_agents.core.events import (
    Event,
    ModelCallFinished,
    ToolCallDenied,
    ToolCallFinished,
    ToolCallStarted,
)
from kantan_agents.core.events.observers import OnlyKinds
from kantan_agents.lab.experiment.prices import Prices, UsageMetrics
from kantan_agents.lab.experiment.tool_use import ToolUse
from kantan_agents.support.secrets import mask
from kantan_agents.traces.capture.canonical import decode

_current: ContextVar[Watch | None] = ContextVar("kantan_agents_current_watch", default=None)
"""The watch of the current task."""


def _notice(event: Event) -> None:
    watch = _current.get()
    if watch is not None:
        watch.add(event)


_KINDS = (ModelCallFinished, ToolCallStarted, ToolCallFinished, ToolCallDenied)

notice = OnlyKinds(_notice, frozenset(_KINDS))
"""A handler for all agents, as judges are watched too."""


@contextmanager
def watched(prices: Prices) -> Iterator[Watch]:
    """Watch runs that start in this task and its child tasks."""
    watch = Watch(prices)
    token = _current.set(watch)
    try:
        yield watch
    finally:
        _current.reset(token)


class Watch:
    """The tool calls and usage of runs, inner ones included."""

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._calls: dict[tuple[str, str], ToolUse] = {}
        self.used = UsageMetrics(cost=prices.nothing)

    @property
    def tool_calls(self) -> tuple[ToolUse, ...]:
        """The tool calls in the order in which they started."""
        return tuple(self._calls.values())

    def add(self, event: Event) -> None:
        """Add an event."""
        if isinstance(event, ModelCallFinished):
            self.used += self._prices.figures(event.model, event, event.seconds)
        elif isinstance(event, ToolCallStarted):
            use = ToolUse(event.tool, _arguments(event.arguments), None, event.agent)
            self._calls[event.run_id, event.call_id] = use
        elif isinstance(event, ToolCallFinished):
            self._evolve(event, output=None if event.output is None else mask(event.output))
        elif isinstance(event, ToolCallDenied):
            self._calls.setdefault(
                (event.run_id, event.call_id), ToolUse(event.tool, None, None, event.agent)
            )
            self._evolve(event, is_denied=True)

    def _evolve(self, event: ToolCallFinished | ToolCallDenied, **changes: Any) -> None:
        key = (event.run_id, event.call_id)
        if key in self._calls:
            self._calls[key] = attrs.evolve(self._calls[key], **changes)


def _arguments(text: str) -> Any:
    try:
        return decode(mask(text))
    except ValueError:
        return mask(text)
