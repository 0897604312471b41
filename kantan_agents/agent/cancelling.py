"""Cancellations of a task that arrive as its work ends."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import anyio


def cancellations_of(task: asyncio.Task[Any] | None) -> int:
    """Return a task's cancellations in force; 0 in Python 3.10, which does not count them."""
    count = getattr(task, "cancelling", None)
    return count() if count is not None else 0


def is_about_to_be_cancelled() -> bool:
    """Return whether a cancellation is pending, so that the next ``await`` raises."""
    # Private, but in every version. asyncio reads it when a coroutine returns, and then cancels the task.
    return getattr(asyncio.current_task(), "_must_cancel", False)


def cancel_later(error: asyncio.CancelledError) -> None:
    """Cancel the task's next await: ``error`` arrived after the work was done.

    Nothing happens if the task, or the canceling scope such as ``asyncio.timeout``, ends first.
    """
    task = asyncio.current_task()
    # A scope of anyio cancels each await until it ends.
    if task is not None and anyio.current_effective_deadline() != -math.inf:
        asyncio.get_running_loop().call_soon(_cancel_again, task, error.args)


def _cancel_again(task: asyncio.Task[Any], message: tuple[Any, ...]) -> None:
    if hasattr(task, "uncancel"):
        if task.cancelling() == 0:
            return
        task.uncancel()  # counted once: the scope that cancelled the task takes back one cancellation
    task.cancel(*message)
