"""Gives event loops their default executor back: DBOS replaces it with its own, which ends with DBOS."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary


class DefaultExecutors:
    """The event loops on which DBOS has worked, with the executors that they had before."""

    def __init__(self) -> None:
        self._loops: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()
        self._lock = Lock()

    def remember(self) -> None:
        """Remember the running loop and its executor, before DBOS works on it."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._loops:
                # Without a public way to ask. None means that the loop makes one when it needs it.
                known = getattr(loop, "_default_executor", None)
                self._loops[loop] = None if type(known).__module__.startswith("dbos.") else known

    def give_back(self) -> None:
        """Let the loops use what they had, or a new executor."""
        with self._lock:
            loops = list(self._loops.items())
        for loop, executor in loops:
            with suppress(RuntimeError):  # it is closed
                loop.call_soon_threadsafe(loop.set_default_executor, executor or ThreadPoolExecutor())
