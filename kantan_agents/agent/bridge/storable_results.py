"""Results, named as in the SDK, whose state can be stored although the context refers to the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import agents

from kantan_agents.agent.bridge.paused_runs import CHOSEN, PausedContext, chosen_in, context_of


class RunState(agents.RunState[Any, Any]):
    """The SDK's state of a run; its JSON omits ``context["result"]``."""

    def to_json(self, **options: Any) -> dict[str, Any]:
        """Return the state as JSON data, as the SDK does."""
        # Not only from a copy: the state of an agent used as a tool holds the same context.
        with without_result(context_of(self)):
            data = super().to_json(**options)
        chosen = chosen_in(self)
        if chosen:
            # The SDK preserves unknown keys of the trace, but none of the run.
            data["trace"] = {**(data.get("trace") or {}), CHOSEN: dict(chosen)}
        return data


class RunResult(agents.RunResult):
    """The SDK's result of a run; its state can be stored."""

    def to_state(self) -> agents.RunState[Any, Any]:
        """Return the state of the run, as the SDK does."""
        return _storable(super().to_state())


class RunResultStreaming(agents.RunResultStreaming):
    """The SDK's result of a streamed run; its state can be stored."""

    def to_state(self) -> agents.RunState[Any, Any]:
        """Return the state of the run, as the SDK does."""
        return _storable(super().to_state())


def _storable(state: agents.RunState[Any, Any]) -> agents.RunState[Any, Any]:
    if state.__class__ is agents.RunState:
        state.__class__ = RunState
    return state


@contextmanager
def without_result(context: Any) -> Iterator[None]:
    """Take the result out of a context during the block."""
    if not isinstance(context, dict) or "result" not in context:
        yield
        return
    result = context.pop("result")
    try:
        yield
    finally:
        # A run in another thread may have stored its own result meanwhile.
        context.setdefault("result", result)


def detach_result(result: Any, context: dict[str, Any], chosen: Mapping[str, Any]) -> None:
    """Make a result's state storable; a paused run's gets a copy of ``context``."""
    kind = result.__class__
    if kind is agents.RunResult:
        result.__class__ = RunResult
    elif kind is agents.RunResultStreaming:
        result.__class__ = RunResultStreaming
    wrapper = getattr(result, "context_wrapper", None)
    if wrapper is None or not getattr(result, "interruptions", None):
        return
    paused = PausedContext({key: value for key, value in context.items() if key != "result"})
    paused.caller_context, paused.chosen = context, chosen
    wrapper.context = paused
