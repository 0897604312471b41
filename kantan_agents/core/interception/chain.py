"""The chain of middleware around a call."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from kantan_agents.core.interception.calls import ModelCall, ModelNext, ToolCall, ToolNext
from kantan_agents.errors import MiddlewareResultError

CallT = TypeVar("CallT")


def around_model_call(layers: Sequence[Any], call: ModelCall, request: ModelNext) -> Awaitable[Any]:
    """Pass ``call`` through ``layers``, outermost first, to ``request``."""
    call._send = request
    return _link(layers, request, ModelCall)(call)


def around_tool_call(layers: Sequence[Any], call: ToolCall, invoke: ToolNext) -> Awaitable[Any]:
    """Pass ``call`` through ``layers``, outermost first, to ``invoke``."""
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
    async def enter(call: CallT) -> Any:
        below = _Below(layer, following, kind)
        result = await layer(call, below)
        if result is None or inspect.isawaitable(result):
            below.check(result)
        return result

    return enter


class _Below:
    def __init__(self, layer: Any, following: Callable[[Any], Awaitable[Any]], kind: type) -> None:
        self._layer = layer
        self._following = following
        self._kind = kind
        self._made: list[Coroutine[Any, Any, Any]] = []
        self.answered = False
        self.answered_nothing = False

    def __call__(self, call: Any) -> Awaitable[Any]:
        if not isinstance(call, self._kind):
            raise self._error(f"call_next takes a {self._kind.__name__}, not {call!r}")
        made = self._pass_on(call)
        self._made.append(made)
        return made

    async def _pass_on(self, call: Any) -> Any:
        result = await self._following(call)
        self.answered = True
        self.answered_nothing = self.answered_nothing or result is None
        return result

    def check(self, result: Any) -> None:
        """Raise if a middleware has returned None by mistake.

        A tool may return None.
        """
        not_begun = [one for one in self._made if inspect.getcoroutinestate(one) == inspect.CORO_CREATED]
        for one in not_begun:
            one.close()
        if inspect.iscoroutine(result):
            result.close()
        if self._kind is ModelCall:
            wanted = (
                f"it must return the SDK's ModelResponse, not {'None' if result is None else 'an awaitable'}"
            )
        elif result is not None:
            wanted = "it returned an awaitable"
        elif not_begun:
            wanted = "it did not await call_next"
        elif self.answered_nothing:
            return
        elif self.answered:
            wanted = "it returned None although call_next had returned a result"
        else:
            wanted = "it returned None without a result of call_next"
        raise self._error(f"{wanted}; write `return await call_next(call)`, or return a result instead of it")

    def _error(self, reason: str) -> MiddlewareResultError:
        return MiddlewareResultError(middleware=_name_of(self._layer), reason=reason)


def _name_of(layer: Any) -> str:
    return str(getattr(layer, "__qualname__", type(layer).__qualname__))
