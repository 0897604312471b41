"""Calls models without client retries."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from importlib import import_module
from inspect import iscoroutine
from typing import Any, TypeVar, cast

from kantan_agents.models.client_retries import client_retries_off
from kantan_agents.support.log import get_logger

T = TypeVar("T")
_END: Any = object()
_log = get_logger("kantan_agents.models")


@contextmanager
def _retries_off(model: Any) -> Iterator[None]:
    """Make the client of ``model`` send each request once.

    This library's clients read the context variable. The SDK handles the others.
    """
    find = getattr(type(model), "current_model", None)  # of a NamedModel
    found = model if find is None else find(model)
    # An import here takes half a second of a run; `sdk_model` makes it.
    light: Any = sys.modules.get("kantan_agents.models.light_requests")
    is_own = light is not None and light.sends_light_requests(found)
    token = client_retries_off.set(True)
    try:
        with _sdk_switch()(not is_own):
            yield
    finally:
        client_retries_off.reset(token)


async def answer_sent_once(model: Any, answer: Awaitable[T]) -> T:
    """Return an answer, without client retries."""
    try:
        with _retries_off(model):
            return await answer
    finally:
        if iscoroutine(answer):
            answer.close()  # never started without a client


async def stream_sent_once(model: Any, events: Any) -> AsyncIterator[Any]:
    """Yield a model's stream, opened without client retries.

    Later, during a ``yield``, the variables would affect the consumer.
    """
    steps = aiter(events)
    try:
        with _retries_off(model):
            event = await anext(steps, _END)
        while event is not _END:
            yield event
            event = await anext(steps, _END)
    finally:
        close = getattr(events, "aclose", None)
        if close is not None:
            await close()


@cache
def _sdk_switch() -> Callable[[bool], AbstractContextManager[None]]:
    name = "provider_managed_retries_disabled"
    try:
        switch = getattr(import_module("agents.models._retry_runtime"), name)
    except (ImportError, AttributeError) as error:
        _log.warning("clients of SDK models keep their own retries in the first attempt", error=repr(error))
        return lambda _: nullcontext()
    return cast("Callable[[bool], AbstractContextManager[None]]", switch)
