"""What waits to be written: appended to by every thread, taken from by one, never longer than its limit.

In the usual case the calling thread does nothing but single operations of the interpreter, so that it needs
no lock: a signal handler or a destructor may end a span while another span is being appended. Only what is
taken out at the other end is taken under the lock.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs

from kantan_agents.tracing.recorder.marker import Marker, Wake
from kantan_agents.tracing.recorder.snapshot import SpanSnapshot, TraceSnapshot

Item = TraceSnapshot | SpanSnapshot | Marker

# Of traces whose spans were dropped, at least so many are kept: they are small, and by them spans are found.
_TRACES_KEPT = 10_000


@attrs.define(eq=False)
class SpanQueue:
    """A bounded queue of snapshots.

    Attributes:
        limit: How many may wait.
        max_bytes: How large together they may be, from the moment on that they cannot be written.
        max_wait: Seconds that a thread waits for room; after that the oldest span is dropped.
        may_wait: Tells whether the calling thread may wait for the writer at all.
        on_drop: Called after the first span of a row of them was dropped.
        dropped: Spans dropped so far.
        in_hand: What the writer is writing.
        lock: Held while something is taken out.
        version: Odd while something moves; the same before and after, nothing has moved meanwhile.
        wake: Wakes the writer.
        sleeping: Whether the writer waits for something to do.
        urgent: Whether the writer is to write at once.
    """

    limit: int
    max_bytes: int
    max_wait: float
    may_wait: Callable[[], bool]
    on_drop: Callable[[], None]
    dropped: int = 0
    in_hand: list[Item] = attrs.field(factory=list)
    lock: threading.Condition = attrs.field(factory=threading.Condition)
    version: int = 0
    wake: Wake = attrs.field(factory=Wake)
    sleeping: bool = False
    urgent: bool = False
    _items: deque[Item] = attrs.field(factory=deque)
    _saved: deque[Item] = attrs.field(factory=deque)
    _dropping: bool = False
    _in_trouble: bool = False
    _bytes: int = 0

    def __len__(self) -> int:
        return len(self._items) + len(self._saved)

    @contextmanager
    def moving(self) -> Iterator[None]:
        """Hold the lock, and let it be seen that what waits, is in hand or was dropped is about to change."""
        with self.lock:
            self.version += 1
            try:
                yield
            finally:
                self.version += 1

    def put(self, item: Item) -> None:
        """Append ``item``; drop the oldest span if there is no room and none comes in time."""
        if self._is_full():
            self._make_room()
        if self._in_trouble:
            self._count_bytes(item)
        self._items.append(item)
        if self.sleeping:
            self.wake.set()
        elif len(self._items) == self.limit // 2:
            self.hurry()

    def put_marker(self) -> Marker:
        """Append a marker, have the writer hurry, and return it."""
        marker = Marker()
        self._items.append(marker)
        self.hurry()
        return marker

    def hurry(self) -> None:
        """Have the writer write at once."""
        self.urgent = True
        self.wake.set()

    def take(self, count: int) -> list[Item]:
        """Take the oldest items in hand, at most ``count`` and at most the limit, and return them."""
        with self.moving():
            for source in (self._saved, self._items):
                while source and len(self.in_hand) < min(count, self.limit):
                    # In this order: whoever looks without the lock, here first and then in the hand, sees it.
                    self.in_hand.append(source[0])
                    source.popleft()
            return self.in_hand

    def put_back(self) -> None:
        """Let what is in hand be the oldest that waits: it could not be written."""
        with self.moving():
            self._items.extendleft(reversed(self.in_hand))
            self.in_hand = []
            self._in_trouble = True
            self._bytes = sum(_size(item) for item in self._items.copy())
            is_first = self._drop_what_is_too_much()
        if is_first:
            self.on_drop()

    def done(self) -> None:
        """Let go of what is in hand: it was written, or given up."""
        with self.moving():
            self.in_hand = []
            self._in_trouble = False
            self._dropping = self._dropping and len(self) > 0
            self.lock.notify_all()

    def unwritten(self) -> list[Item]:
        """Return what waits and what is in hand; a copy."""
        waiting = [*self._saved.copy(), *self._items.copy()]
        return [*self.in_hand, *waiting]

    def markers(self) -> list[Marker]:
        """Return the markers that somebody waits at."""
        return [item for item in self.unwritten() if isinstance(item, Marker) and not item.is_left]

    def _count_bytes(self, item: Item) -> None:
        with self.moving():
            self._bytes += _size(item)
            is_first = self._drop_what_is_too_much()
        if is_first:
            self.on_drop()

    def _drop_what_is_too_much(self) -> bool:
        """Drop the oldest until limit and size hold; return whether that is the first of a row."""
        was_dropping = self._dropping
        while len(self._items) > self.limit or self._bytes > self.max_bytes:
            dropped = self._drop_oldest()
            if dropped is None:
                break
            self._bytes -= _size(dropped)
            self._dropping = True
        return self._dropping and not was_dropping

    def _is_full(self) -> bool:
        # What is in hand comes back if it cannot be written. Those who wait leave room for it; otherwise the
        # oldest is dropped then, and that is what comes back.
        in_hand = len(self.in_hand) if self.max_wait > 0 else 0
        return len(self._items) + in_hand >= self.limit

    def _make_room(self) -> None:
        self.hurry()
        if self.max_wait > 0 and self.may_wait() and self._room_within(self.max_wait):
            return
        with self.moving():
            is_first = self._drop_oldest() is not None and not self._dropping
            self._dropping = self._dropping or is_first
        if is_first:
            self.on_drop()

    def _room_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        with self.lock:
            while self._is_full():
                remaining = min(deadline - time.monotonic(), threading.TIMEOUT_MAX)
                if remaining <= 0 or not self.lock.wait(remaining):
                    return False
        return True

    def _drop_oldest(self) -> SpanSnapshot | None:
        """Drop the oldest span and return it; keep the traces and markers before it."""
        while self._items:
            item = self._items.popleft()
            if isinstance(item, SpanSnapshot):
                self.dropped += 1
                return item
            self._saved.append(item)
            if len(self._saved) > max(self.limit, _TRACES_KEPT):
                self._saved.popleft()
        return None


def _size(item: Item) -> int:
    return 0 if isinstance(item, Marker) else len(item.packed)
