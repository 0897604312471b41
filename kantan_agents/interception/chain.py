"""The chain of middleware around a model call or a tool call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from kantan_agents.errors import MiddlewareResultError
from kantan_agents.interception.calls import ModelCall, ModelNext, ToolCall, ToolNext

CallT = TypeVar("CallT")


def around_model_call(layers: Sequence[Any], call: ModelCall, request: ModelNext) -> Awaitable[Any]:
    """Pass ``call`` through ``layers``, the first one outermost, to ``request``, which calls the model."""
    return _link(layers, request, ModelCall)(call)


def around_tool_call(layers: Sequence[Any], call: ToolCall, invoke: ToolNext) -> Awaitable[Any]:
    """Pass ``call`` through ``layers``, the first one outermost, to ``invoke``, which runs the tool."""
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
                middleware=_name_of(layer), reason=f"call_next takes a {kind.__name__}, not {call!r}"
            )
        return following(call)

    def enter(call: CallT) -> Awaitable[Any]:
        awaitable: Awaitable[Any] = layer(call, call_next)
        return awaitable

    return enter


def _name_of(layer: Any) -> str:
    return str(getattr(layer, "__qualname__", type(layer).__qualname__))
