"""A provider that ends with the error of a cancellation, although nobody has cancelled it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from kantan_agents.errors import AgentPainException


@contextmanager
def no_cancellation_of_its_own(provider: str) -> Iterator[None]:
    """Make an error of a cancellation that did not come from outside, and would end a run without a word.

    On Python 3.10 nobody knows where a cancellation comes from; there it stays what it is.

    Raises:
        AgentPainException: E51, the provider has raised it by itself.
    """
    try:
        yield
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        cancelling = getattr(task, "cancelling", None)
        if cancelling is None or cancelling():
            raise
        reason = "it raised CancelledError, although it was not cancelled"
        raise AgentPainException(provider=provider, reason=reason) from error
