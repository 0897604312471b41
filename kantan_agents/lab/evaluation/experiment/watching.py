"""``Watch``: what a run of a case does, from its events."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import attrs

from kantan_agents.core.events import (
    Event,
    ModelCallFinished,
    ToolCallFinished,
    ToolCallRefused,
    ToolCallStarted,
)
from kantan_agents.core.events.observers import OnlyKinds
from kantan_agents.core.usage import tokens_of
from kantan_agents.lab.evaluation.finished_case import ToolUse
from kantan_agents.lab.replay.experiment.prices import Prices
from kantan_agents.support.secrets import mask
from kantan_agents.traces.capture.canonical import decode

current_watch: ContextVar[Watch | None] = ContextVar("kantan_agents_current_watch", default=None)
"""The watch of the run of a case that the current task belongs to."""


def _notice(event: Event) -> None:
    watch = current_watch.get()
    if watch is not None:
        watch.add(event)


_KINDS = (ModelCallFinished, ToolCallStarted, ToolCallFinished, ToolCallRefused)

notice = OnlyKinds(_notice, frozenset(_KINDS))
"""Passes an event on to the watch of its run; a handler for all agents, as judges are watched too."""


class Watch:
    """The model calls and tool calls of one run of a case and of the runs inside it.

    Args:
        prices: Prices of models.

    Attributes:
        input_tokens: Input tokens so far.
        output_tokens: Output tokens so far.
        cost: Their price; None if a model has none.
        model_calls: Number of finished model calls.
    """

    def __init__(self, prices: Prices) -> None:
        self._prices = prices
        self._calls: dict[tuple[str, str], ToolUse] = {}
        self.input_tokens = 0
        self.output_tokens = 0
        self.cost: float | None = prices.nothing
        self.model_calls = 0

    @property
    def tool_calls(self) -> tuple[ToolUse, ...]:
        """The tool calls in the order in which they began."""
        return tuple(self._calls.values())

    def add(self, event: Event) -> None:
        """Add an event of the run or of one inside it."""
        if isinstance(event, ModelCallFinished):
            self._count(event)
        elif isinstance(event, ToolCallStarted):
            use = ToolUse(event.tool, _arguments(event.arguments), None, event.agent)
            self._calls[event.run_id, event.call_id] = use
        elif isinstance(event, ToolCallFinished):
            self._evolve(event, output=None if event.output is None else mask(event.output))
        elif isinstance(event, ToolCallRefused):
            self._calls.setdefault(
                (event.run_id, event.call_id), ToolUse(event.tool, None, None, event.agent)
            )
            self._evolve(event, is_refused=True)

    def _count(self, event: ModelCallFinished) -> None:
        used = tokens_of(event)
        price = self._prices.cost(event.model, *used)
        self.cost = None if self.cost is None or price is None else self.cost + price
        self.input_tokens += used[0]
        self.output_tokens += used[1]
        self.model_calls += 1

    def _evolve(self, event: ToolCallFinished | ToolCallRefused, **changes: Any) -> None:
        key = (event.run_id, event.call_id)
        if key in self._calls:
            self._calls[key] = attrs.evolve(self._calls[key], **changes)


def _arguments(text: str) -> Any:
    try:
        return decode(mask(text))
    except ValueError:
        return mask(text)
