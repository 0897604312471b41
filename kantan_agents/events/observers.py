"""Subscriptions of event handlers, to one agent or to the whole process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from threading import Lock
from types import TracebackType

from typing_extensions import Self

from kantan_agents.errors import InvalidOptionError
from kantan_agents.events.kinds import Event

Handler = Callable[[Event], "Awaitable[None] | None"]
"""Called with each event, in order. The run waits for an async handler."""


class Subscription:
    """The subscription of a handler: end it with ``cancel()``, or use it in a ``with`` block."""

    def __init__(self, observers: Observers, handler: Handler) -> None:
        self._observers = observers
        self._handler = handler

    def cancel(self) -> None:
        """End the subscription. Runs that have already started still notify the handler."""
        self._observers.remove(self)

    @property
    def handler(self) -> Handler:
        """The subscribed handler."""
        return self._handler

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cancel()


_changing = Lock()  # one for all agents: an agent that holds a lock cannot be copied


class Observers:
    """The subscribed handlers of one agent, or of the process, in the order of subscription.

    Attributes:
        handlers: The handlers of a run that starts now.
    """

    __slots__ = ("_subscriptions", "handlers")

    def __init__(self) -> None:
        self._subscriptions: tuple[Subscription, ...] = ()
        self.handlers: tuple[Handler, ...] = ()

    def add(self, handler: Handler) -> Subscription:
        """Call ``handler`` with the events of every run that starts from now on.

        Raises:
            InvalidOptionError: E75, ``handler`` is not callable.
        """
        if not callable(handler):
            raise InvalidOptionError(option="handler", reason=f"must be a function, not {handler!r}")
        subscription = Subscription(self, handler)
        with _changing:
            self._set((*self._subscriptions, subscription))
        return subscription

    def remove(self, subscription: Subscription) -> None:
        """End a subscription; do nothing if it has ended already."""
        with _changing:
            self._set(tuple(known for known in self._subscriptions if known is not subscription))

    def _set(self, subscriptions: tuple[Subscription, ...]) -> None:
        self._subscriptions = subscriptions
        self.handlers = tuple(subscription.handler for subscription in subscriptions)


everywhere = Observers()
"""The handlers of the whole process."""


def subscribe(handler: Handler) -> Subscription:
    """Call ``handler`` with the events of all runs of all agents in this process.

    Args:
        handler: Called with each ``Event``. It may be sync or async; the run waits for an async one. An
            exception it raises is logged and does not affect the run.

    Returns:
        The subscription. End it with ``cancel()``, or use it as a context manager.

    Raises:
        InvalidOptionError: E75, ``handler`` is not callable.
    """
    return everywhere.add(handler)
