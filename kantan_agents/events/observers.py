"""Who is told of events: handlers of one agent, and those of the whole process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from threading import Lock
from types import TracebackType

from typing_extensions import Self

from kantan_agents.errors import InvalidOptionError
from kantan_agents.events.kinds import Event

Handler = Callable[[Event], "Awaitable[None] | None"]
"""Called with each event, in their order. An async one is awaited before the run goes on."""


class Subscription:
    """What ``subscribe`` returns: ``cancel()`` ends it, and so does the end of a ``with`` block."""

    def __init__(self, observers: Observers, handler: Handler) -> None:
        self._observers = observers
        self._handler = handler

    def cancel(self) -> None:
        """End it; runs that are under way go on telling the handler."""
        self._observers.remove(self)

    @property
    def handler(self) -> Handler:
        """Who is told."""
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


_changing = Lock()  # one for all: an agent with a lock of its own could not be copied


class Observers:
    """Handlers in the order in which they subscribed.

    Attributes:
        handlers: Who is told of a run that begins now.
    """

    __slots__ = ("_subscriptions", "handlers")

    def __init__(self) -> None:
        self._subscriptions: tuple[Subscription, ...] = ()
        self.handlers: tuple[Handler, ...] = ()

    def add(self, handler: Handler) -> Subscription:
        """Tell ``handler`` of the events of every run that begins from now on.

        Raises:
            InvalidOptionError: E75, it cannot be called.
        """
        if not callable(handler):
            raise InvalidOptionError(option="handler", reason=f"must be a function, not {handler!r}")
        subscription = Subscription(self, handler)
        with _changing:
            self._set((*self._subscriptions, subscription))
        return subscription

    def remove(self, subscription: Subscription) -> None:
        """End a subscription; nothing if it has ended."""
        with _changing:
            self._set(tuple(known for known in self._subscriptions if known is not subscription))

    def _set(self, subscriptions: tuple[Subscription, ...]) -> None:
        self._subscriptions = subscriptions
        self.handlers = tuple(subscription.handler for subscription in subscriptions)


everywhere = Observers()
"""Those of the whole process."""


def subscribe(handler: Handler) -> Subscription:
    """Tell ``handler`` of the events of all agents' runs in this process.

    Args:
        handler: Called with each ``Event``; sync, or async and then awaited before the run goes on. One
            that raises is logged and never breaks a run.

    Returns:
        The subscription; ``cancel()`` ends it, and it is a context manager that does.

    Raises:
        InvalidOptionError: E75, it cannot be called.
    """
    return everywhere.add(handler)
