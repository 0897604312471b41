"""Lets a caller see the headers of a provider's answers, which the SDK does not pass on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

Listener: TypeAlias = Callable[[Mapping[str, str]], None]

_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("kantan_agents_answer_headers", default=())
_FIRST_ERROR = 400


@contextmanager
def read_answer_headers(listener: Listener) -> Iterator[None]:
    """Call a function with the headers of each answer that this task, or one it starts, gets in the block.

    The function is called as soon as the headers are there, so before a streamed answer ends. It is not
    called for errors. It has to return at once and must not raise.
    """
    token = _listeners.set((*_listeners.get(), listener))
    try:
        yield
    finally:
        _listeners.reset(token)


def report_answer_headers(client: Any) -> None:
    """Make an HTTP client of a provider report the headers of its answers.

    Args:
        client: An ``AsyncClient`` of httpx or httpx2. A client without event hooks is left unchanged.
    """
    hooks = getattr(client, "event_hooks", None)
    if isinstance(hooks, dict) and _report not in hooks.setdefault("response", []):
        hooks["response"].append(_report)


async def _report(response: Any) -> None:
    listeners = _listeners.get()
    if listeners and response.status_code < _FIRST_ERROR:
        for listener in listeners:
            listener(response.headers)
