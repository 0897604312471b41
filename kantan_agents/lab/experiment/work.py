"""``Work``: does work items concurrently within a budget."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import anyio
import httpx
import openai

from kantan_agents.errors import ModelNotConfiguredError, ModelNotFoundError, ProviderRequestError
from kantan_agents.lab.experiment.spending import Spending
from kantan_agents.support.ledger import Amounts

_Unit = TypeVar("_Unit")

# Seconds from the start of one worker to the next. Workers that start together stay together: all wait for
# their models at the same time, and then all have work at the same time. Apart, some work while others
# wait.
_START_APART: Final = 0.001
_NO_ACCESS: Final = (401, 403, 404)


class Work:
    """Does work items until an error occurs that each would have."""

    def __init__(self, spending: Spending) -> None:
        self.spending = spending
        self.stopped: Exception | None = None
        self._running = 0
        self._settled = anyio.Event()

    def stop(self, error: Exception | None) -> None:
        """Let no more items start; the first error counts."""
        self.stopped = self.stopped or error

    async def do(
        self,
        units: Iterable[_Unit],
        one: Callable[[_Unit], Awaitable[None]],
        workers: int,
        is_known: Callable[[_Unit], bool] = lambda _: True,
    ) -> None:
        """Do work items in order; with a budget, first items of unknown usage, one by one."""
        left = list(units)
        if self.spending.limits:
            waiting, left = left, []
            for unit in waiting:
                if self.stopped is not None or is_known(unit):
                    left.append(unit)
                else:
                    await one(unit)
        queue = iter(left)
        async with anyio.create_task_group() as group:
            for number in range(min(workers, len(left))):
                group.start_soon(self._worker, queue, one, number * _START_APART)

    async def _worker(
        self, queue: Iterator[_Unit], one: Callable[[_Unit], Awaitable[None]], delay: float
    ) -> None:
        await anyio.sleep(delay)
        for unit in queue:
            if self.stopped is not None:
                return
            await one(unit)

    @asynccontextmanager
    async def paid(
        self, estimate: Callable[[], Amounts], used_up: Callable[[], Exception]
    ) -> AsyncIterator[bool]:
        """Reserve an item's estimate, and yield whether it may start."""
        reserved = self.spending.reservation(estimate())
        while reserved is None and self._running:
            # Another item may use less than its reservation.
            await self._settled.wait()
            reserved = self.spending.reservation(estimate())
        if reserved is None:
            self.stop(used_up())
        if reserved is None or self.stopped is not None:
            yield False
            return
        self._running += 1
        try:
            yield True
        finally:
            self.spending.release(reserved)
            self._running -= 1
            self._settled.set()
            self._settled = anyio.Event()


def is_fatal(error: Exception | None) -> bool:
    """Return whether every run would have this error."""
    if isinstance(error, openai.APITimeoutError):  # the next request may be in time
        return False
    kinds = (ModelNotConfiguredError, ModelNotFoundError, openai.APIConnectionError, httpx.ConnectError)
    status = error.status if isinstance(error, ProviderRequestError) else getattr(error, "status_code", None)
    return isinstance(error, kinds) or status in _NO_ACCESS
