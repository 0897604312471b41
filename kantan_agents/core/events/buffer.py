"""A streamed run's bounded buffer."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

from kantan_agents.core.events.kinds import Event


class EventBuffer:
    """Over ``size``, the run waits.

    An event is added before its sender waits, so cancellation loses none.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._loop = asyncio.get_running_loop()
        self._events: deque[Event] = deque()
        self._added = asyncio.Event()
        self._space = asyncio.Event()
        self._asked = asyncio.Event()
        self._has_reader = False
        self._is_idle = False
        self._is_closed = False

    def put(self, event: Event) -> Awaitable[None] | None:
        """Over the size, await the result before the next."""
        if self._is_closed:
            return None
        self._events.append(event)
        if asyncio.get_running_loop() is not self._loop:
            # A sync run inside a tool has its own loop, for which the reader's loop may wait.
            self._loop.call_soon_threadsafe(self._added.set)
            return None
        self._added.set()
        return self._wait_for_space() if len(self._events) > self._size else None

    async def _wait_for_space(self) -> None:
        while len(self._events) > self._size and not self._is_closed:
            self._space.clear()
            await self._space.wait()

    async def get(self) -> Event | None:
        """Return None after the last one."""
        self._has_reader = True
        while not self._events:
            if self._is_closed:
                return None
            self._is_idle = True  # the reader has handled all its events
            self._asked.set()
            self._added.clear()
            await self._added.wait()
        event = self._events.popleft()
        self._is_idle = False
        if len(self._events) <= self._size:
            self._space.set()
        return event

    async def wait_until_read(self, is_needless: Callable[[], bool]) -> None:
        """Wait if there is a reader; call ``wake`` when ``is_needless`` changes."""
        while self._has_unhandled() and not is_needless():
            self._asked.clear()
            await self._asked.wait()

    def _has_unhandled(self) -> bool:
        return self._has_reader and bool(self._events or not self._is_idle) and not self._is_closed

    def wake(self) -> None:
        """Check ``is_needless`` again."""
        self._asked.set()

    def leave(self) -> None:
        """The reader is gone; thread-safe for garbage collectors."""
        if not self._is_closed:
            self._has_reader = False
            with suppress(RuntimeError):  # the loop is closed, without runs
                self._loop.call_soon_threadsafe(self.wake)

    def close(self) -> None:
        """Accept no more events."""
        self._is_closed = True
        self._added.set()
        self._space.set()
        self._asked.set()

    def clear(self) -> None:
        """Close, and drop unread events."""
        self.close()
        self._events.clear()
