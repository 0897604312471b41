"""The sync form of an async function, with the same signature."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from kantan_agents.agent.running.portal import background_loop

P = ParamSpec("P")
T = TypeVar("T")


def sync_of(function: Callable[P, Awaitable[T]]) -> Callable[[Callable[[], None]], Callable[P, T]]:
    """Return a decorator that turns a name and a docstring into the sync form of ``function``.

        @sync_of(search_async)
        def search() -> None:
            '''Search the store.'''

    It has the signature of ``function``, also in the API reference (``docs/sync_signatures.py``).
    """
    signature = inspect.signature(function)

    def decorate(documented: Callable[[], None]) -> Callable[P, T]:
        @wraps(documented)
        def sync(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:  # with the name that was called, not the async function's
                raise TypeError(f"{documented.__name__}() {error}") from None
            return background_loop.run(lambda: function(*args, **kwargs))

        sync.__annotations__ = function.__annotations__
        sync.__signature__ = signature  # type: ignore[attr-defined]
        return sync

    return decorate
