"""Exposes headers of answers, which the SDK hides."""

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
    """Call ``listener`` with the headers of each answer to this task or its tasks.

    It is called before a streamed answer ends, not for errors. It must return quickly and not raise.
    """
    token = _listeners.set((*_listeners.get(), listener))
    try:
        yield
    finally:
        _listeners.reset(token)


def report_answer_headers(client: Any) -> None:
    """Make an ``AsyncClient`` report answer headers."""
    hooks = getattr(client, "event_hooks", None)
    if isinstance(hooks, dict) and _report not in hooks.setdefault("response", []):
        hooks["response"].append(_report)


async def _report(response: Any) -> None:
    listeners = _listeners.get()
    if listeners and response.status_code < _FIRST_ERROR:
        for listener in listeners:
            listener(response.headers)
