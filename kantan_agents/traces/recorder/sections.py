"""Tracks which threads hold a recorder's locks, and their deferred actions.

A signal handler or a destructor may end a span inside a section. It must not wait there for another thread,
which may wait for the section.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import get_ident


class Sections:
    """The sections of one recorder that threads are in."""

    def __init__(self) -> None:
        self._depths: dict[int, int] = {}
        self._deferred: dict[int, list[Callable[[], None]]] = {}

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Mark this thread as inside; at the end, call the deferred actions."""
        thread_id = get_ident()
        # Before the lock: a destructor may run between any two lines.
        self._depths[thread_id] = self._depths.get(thread_id, 0) + 1
        try:
            yield
        finally:
            depth = self._depths[thread_id] - 1
            if depth:
                self._depths[thread_id] = depth
            else:
                del self._depths[thread_id]
                while self._deferred.get(thread_id):
                    self._deferred[thread_id].pop(0)()
                self._deferred.pop(thread_id, None)

    def hold_this_thread(self) -> bool:
        """Return whether the calling thread is inside a section."""
        return get_ident() in self._depths

    def defer(self, action: Callable[[], None]) -> bool:
        """Call ``action`` when this thread leaves; return False if it is outside."""
        if not self.hold_this_thread():
            return False
        self._deferred.setdefault(get_ident(), []).append(action)
        return True
