"""Middleware one inside the other, around a model call or a tool call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from kantan_agents.errors import MiddlewareResultError
from kantan_agents.interception.calls import ModelCall, ModelNext, ToolCall, ToolNext

CallT = TypeVar("CallT")


def around_model_call(layers: Sequence[Any], call: ModelCall, ask: ModelNext) -> Awaitable[Any]:
    """Send ``call`` through ``layers``, the first one outermost, to ``ask``."""
    return _link(layers, ask, ModelCall)(call)


def around_tool_call(layers: Sequence[Any], call: ToolCall, invoke: ToolNext) -> Awaitable[Any]:
    """Send ``call`` through ``layers``, the first one outermost, to ``invoke``."""
    return _link(layers, invoke, ToolCall)(call)


def _link(
    layers: Sequence[Any], end: Callable[[CallT], Awaitable[Any]], kind: type[CallT]
) -> Callable[[CallT], Awaitable[Any]]:
    following = end
    for layer in reversed(layers):
        following = _enter(layer, following, kind)
    return following


def _enter(
    layer: Any, following: Callable[[CallT], Awaitable[Any]], kind: type[CallT]
) -> Callable[[CallT], Awaitable[Any]]:
    def call_next(call: CallT) -> Awaitable[Any]:
        if not isinstance(call, kind):
            raise MiddlewareResultError(
                middleware=_shown(layer), reason=f"call_next takes a {kind.__name__}, not {call!r}"
            )
        return following(call)

    def enter(call: CallT) -> Awaitable[Any]:
        awaitable: Awaitable[Any] = layer(call, call_next)
        return awaitable

    return enter


def _shown(layer: Any) -> str:
    return str(getattr(layer, "__qualname__", type(layer).__qualname__))
