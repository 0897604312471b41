"""A thread that makes OpenTelemetry send what waits, so that others can wait for it for a limited time.

The SDK's ``force_flush`` waits for the collector as long as that takes, whatever timeout it is given. And at
the end of an interpreter no new thread can be started, so this one is started with the exporter.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class Flusher:
    """Calls ``flush`` in its own thread.

    Args:
        flush: Sends what waits; returns when that is done.
    """

    def __init__(self, flush: Callable[[], object]) -> None:
        self._flush = flush
        self._last: Callable[[], object] | None = None
        self.renew()

    def renew(self) -> None:
        """Start the thread; also in a forked child, which has none."""
        self._asked = 0
        self._done = 0
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="kantan-agents-otel", daemon=True)
        self._thread.start()

    def begin(self) -> Callable[[float], bool]:
        """Begin to send what waits now.

        Returns:
            A function that waits for at most the given seconds and returns whether that is done.
        """
        with self._changed:
            self._asked += 1
            wanted = self._asked
            self._changed.notify_all()

        def wait(seconds: float) -> bool:
            with self._changed:
                return self._changed.wait_for(lambda: self._done >= wanted, max(0.0, seconds))

        return wait

    def end_with(self, last: Callable[[], object]) -> None:
        """Send what waits, call ``last``, and end the thread."""
        self._last = last
        self.begin()

    def _work(self) -> None:
        changed = self._changed
        while self._last is None or self._asked > self._done:
            with changed:
                changed.wait_for(lambda: self._asked > self._done)
                wanted = self._asked
            try:
                self._flush()
            finally:
                with changed:
                    self._done = wanted
                    changed.notify_all()
        self._last()
