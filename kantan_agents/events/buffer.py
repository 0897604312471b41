"""Events between a run and whoever reads them: in order, and never many ahead."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable

from kantan_agents.events.kinds import Event


class EventBuffer:
    """Holds events until they are read; whoever adds one to a full buffer waits.

    An event is in the buffer before its sender waits, so a sender that is cancelled loses none.

    Args:
        size: How many events may wait to be read.
    """

    __slots__ = ("_events", "_is_closed", "_loop", "_news", "_room", "_size")

    def __init__(self, size: int) -> None:
        self._size = size
        self._loop = asyncio.get_running_loop()
        self._events: deque[Event] = deque()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._is_closed = False

    def put(self, event: Event) -> Awaitable[None] | None:
        """Add an event; nothing once the buffer is closed.

        Returns:
            What waits for room, if there is none; to be awaited before the next event is added.
        """
        if self._is_closed:
            return None
        self._events.append(event)
        if asyncio.get_running_loop() is not self._loop:
            # From a sync run inside a tool: the reader's loop may be waiting for that very run.
            self._loop.call_soon_threadsafe(self._news.set)
            return None
        self._news.set()
        return self._wait_for_room() if len(self._events) > self._size else None

    async def _wait_for_room(self) -> None:
        while len(self._events) > self._size and not self._is_closed:
            self._room.clear()
            await self._room.wait()

    async def get(self) -> Event | None:
        """Return the next event; None when there will be no more."""
        while not self._events:
            if self._is_closed:
                return None
            self._news.clear()
            await self._news.wait()
        event = self._events.popleft()
        if len(self._events) <= self._size:
            self._room.set()
        return event

    def close(self) -> None:
        """Take no more events; those that wait can still be read."""
        self._is_closed = True
        self._news.set()
        self._room.set()

    def clear(self) -> None:
        """Take no more events, and forget those that wait."""
        self.close()
        self._events.clear()
