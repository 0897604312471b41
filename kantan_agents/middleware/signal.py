"""``Signal``: wakes one waiting task from any thread."""

from __future__ import annotations

import asyncio


class Signal:
    """Wakes the task that created it. Any thread may set it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._event = asyncio.Event()

    def set(self) -> bool:
        """Wake the task; False if its event loop is closed."""
        if asyncio._get_running_loop() is self._loop:  # None instead of an exception outside of a loop
            self._event.set()
            return True
        try:
            self._loop.call_soon_threadsafe(self._event.set)
        except RuntimeError:
            return False
        return True

    async def wait(self) -> None:
        """Wait until it is set."""
        await self._event.wait()

    def clear(self) -> None:
        """Reset it."""
        self._event.clear()
