"""``EndingSignal``: waits for SIGTERM or SIGINT; a second one ends the process at once."""

from __future__ import annotations

import asyncio
import signal
from types import FrameType
from typing import Final

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class EndingSignal:
    """Waits for the signal that ends a worker. Create it on the event loop, in the main thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._received = asyncio.Event()
        self.name = ""
        self._before = {number: signal.signal(number, self._note) for number in SIGNALS}

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.name = signal.Signals(number).name
        for one in SIGNALS:
            signal.signal(one, signal.SIG_DFL)
        self._loop.call_soon_threadsafe(self._received.set)

    def restore(self) -> None:
        """Set the handlers again that were set before, unless a signal has come."""
        if not self.name:
            for number, handler in self._before.items():
                signal.signal(number, handler)

    async def wait(self) -> None:
        """Wait for the first signal."""
        await self._received.wait()
