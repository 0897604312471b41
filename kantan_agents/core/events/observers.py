"""Subscriptions of event handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from threading import Lock
from types import TracebackType

import attrs
from typing_extensions import Self

from kantan_agents.core.events.kinds import Event
from kantan_agents.errors import InvalidOptionError

Handler = Callable[[Event], "Awaitable[None] | None"]
"""Called with each event, in order. The run waits for an async handler."""


@attrs.frozen
class WithRawEvents:
    """A handler that also receives ``RawResponseEvent``."""

    handler: Handler

    def __call__(self, event: Event) -> Awaitable[None] | None:
        """Call the handler."""
        return self.handler(event)


@attrs.frozen
class OnlyKinds:
    """A handler of some event classes; others are not created."""

    handler: Handler
    kinds: frozenset[type]

    def __call__(self, event: Event) -> Awaitable[None] | None:
        """Call the handler."""
        return self.handler(event)


class Subscription:
    """The subscription of a handler: end it with ``cancel()``, or use it in a ``with`` block."""

    def __init__(self, observers: Observers, handler: Handler, *, raw_events: bool = False) -> None:
        self._observers = observers
        self._handler = handler
        self._receives: Handler = WithRawEvents(handler) if raw_events else handler

    def cancel(self) -> None:
        """End the subscription. Runs that have already started still notify the handler."""
        self._observers.remove(self)

    @property
    def handler(self) -> Handler:
        """The subscribed handler."""
        return self._handler

    @property
    def receives(self) -> Handler:
        """The handler, as ``WithRawEvents`` if it wants raw events."""
        return self._receives

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cancel()


_changing = Lock()  # one for all agents, which must be copyable


class Observers:
    """The handlers of one agent or the process."""

    def __init__(self) -> None:
        self._subscriptions: tuple[Subscription, ...] = ()
        self.handlers: tuple[Handler, ...] = ()

    def add(self, handler: Handler, *, raw_events: bool = False) -> Subscription:
        """Call ``handler`` with the events of later runs; E75 if it is not callable."""
        if not callable(handler):
            raise InvalidOptionError(option="handler", reason=f"must be a function, not {handler!r}")
        subscription = Subscription(self, handler, raw_events=raw_events)
        with _changing:
            self._set((*self._subscriptions, subscription))
        return subscription

    def remove(self, subscription: Subscription) -> None:
        """End a subscription."""
        with _changing:
            self._set(tuple(known for known in self._subscriptions if known is not subscription))

    def _set(self, subscriptions: tuple[Subscription, ...]) -> None:
        self._subscriptions = subscriptions
        self.handlers = tuple(subscription.receives for subscription in subscriptions)


everywhere = Observers()
"""The handlers of the whole process."""


def subscribe(handler: Handler, *, raw_events: bool = False) -> Subscription:
    """Call ``handler`` with the events of all runs of all agents in this process.

    Args:
        handler: Called with each ``Event``, sync or async; the run waits for an async handler. Its exceptions
            are logged and do not affect the run.
        raw_events: Whether it also receives a ``RawResponseEvent`` for each event of a model's stream. Only
            streamed runs have them.

    Returns:
        The subscription. End it with ``cancel()``, or use it as a context manager.

    Raises:
        InvalidOptionError: E75, ``handler`` is not callable.
    """
    return everywhere.add(handler, raw_events=raw_events)
