"""How threads wait for the writer, and the writer for them."""

from __future__ import annotations

import threading


class Wake:
    """Wakes one waiting thread; setting it needs no lock and may happen anywhere, in signal handlers too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        """Let the waiting thread go on, or the next one that waits."""
        try:
            self._lock.release()
        except RuntimeError:
            return  # set already

    def wait(self, seconds: float) -> bool:
        """Wait until it is set, and take it back; return False after ``seconds``."""
        return self._lock.acquire(timeout=min(max(0.0, seconds), threading.TIMEOUT_MAX))


class Marker:
    """A place in the queue; whoever waits at it learns whether everything before it was written.

    Attributes:
        is_left: Whether nobody waits at it any more.
    """

    def __init__(self) -> None:
        self.is_left = False
        self._wake = Wake()
        self._written = False

    def pass_by(self, *, written: bool) -> None:
        """Say that everything before the marker was written, or that it cannot be."""
        self._written = written
        self._wake.set()

    def wait(self, seconds: float) -> bool:
        """Return whether everything before it was written within ``seconds``."""
        self._wake.wait(seconds)
        self.is_left = True
        return self._written
