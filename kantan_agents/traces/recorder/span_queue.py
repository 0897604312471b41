"""The bounded queue between the threads that end spans and the writer.

Appending is atomic and usually needs no lock: a signal handler or a destructor may end a span while another
one is being appended.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import attrs

from kantan_agents.traces.capture.captured import CapturedRun
from kantan_agents.traces.recorder.sections import Sections
from kantan_agents.traces.recorder.settled import SettledSpan
from kantan_agents.traces.recorder.snapshot import SpanSnapshot, TraceSnapshot
from kantan_agents.traces.recorder.waking import FlushMarker, WriterWake

# These traces with dropped spans remain: they are small, and needed to find other spans.
_TRACES_KEPT = 10_000


# Share of the limit for a batch, whose rows take up to three times its size.
_BATCH_PART = 16
_LARGEST_BATCH = 8 * 1024 * 1024
_ROWS_PER_BYTE = 3

# The writer's thread may be unable to start before the waiting one continues, if a destructor waits while its
# thread holds a lock of ``threading``.
_START_SECONDS = 2.0

SPANS = (SpanSnapshot, SettledSpan)
Snapshot = TraceSnapshot | SpanSnapshot | SettledSpan | CapturedRun
Item = Snapshot | FlushMarker


@attrs.define(eq=False)
class SpanQueue:
    """A bounded queue of snapshots and flush requests.

    ``may_wait`` also starts the writer. ``version`` is odd during a change: a read is consistent if it is
    even and the same before and after.
    """

    limit: int
    max_bytes: int
    max_wait: float
    waking: WriterWake
    may_wait: Callable[[], bool]
    is_served: Callable[[], bool]
    on_drop: Callable[[], None]
    sections: Sections
    dropped: int = 0
    in_flight: list[Item] = attrs.field(factory=list)
    lock: threading.Condition = attrs.field(factory=threading.Condition)
    version: int = 0
    _items: deque[Item] = attrs.field(factory=deque)
    _saved: deque[Item] = attrs.field(factory=deque)
    _dropping: bool = False
    # Only augmented assignments of a number change it, within which Python switches no threads.
    _bytes: int = 0
    _bytes_of_rows: int = 0
    _few_items: int = attrs.field(init=False)
    _few_bytes: int = attrs.field(init=False)
    _batch_bytes: int = attrs.field(init=False)
    _limit_bytes: int = attrs.field(init=False)
    _largest_item: int = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._batch_bytes = min(self.max_bytes // _BATCH_PART, _LARGEST_BATCH)
        # A batch of one has to fit with its rows.
        self._largest_item = self.max_bytes // (1 + _ROWS_PER_BYTE)
        self._limit_bytes = self.max_bytes - _ROWS_PER_BYTE * self._batch_bytes
        # Below these, there is nothing to check.
        self._few_items = 0 if self.max_wait > 0 else self.limit // 2 - 1
        self._few_bytes = min(self._limit_bytes, self._largest_item)

    def __len__(self) -> int:
        return len(self._items) + len(self._saved)

    @contextmanager
    def modifying(self) -> Iterator[None]:
        """Hold the lock, with ``version`` odd."""
        with self.sections.entered(), self.lock:
            self.version += 1
            try:
                yield
            finally:
                self.version += 1

    def put(self, item: Snapshot) -> None:
        """Append ``item``; if the queue stays full, drop the oldest spans."""
        size, items = item.size, self._items
        # Runs wait for this, and the queue is usually far from full.
        if len(items) < self._few_items and self._bytes + size < self._few_bytes:
            self._bytes += size
            items.append(item)
            if self.waking.sleeping:
                self.waking.begin_collecting()
            return
        if (self._is_full(size) or size > self._largest_item) and not self._free_space(item):
            return
        self._bytes += size
        items.append(item)
        if self.waking.sleeping:
            self.waking.begin_collecting()
        elif len(items) == self.limit // 2:
            self.waking.request_write()

    def put_marker(self) -> FlushMarker:
        """Append a ``FlushMarker``, request a write, and return it."""
        marker = FlushMarker()
        self._items.append(marker)
        self.waking.request_write()
        return marker

    def take(self, count: int) -> list[Item]:
        """Move the oldest items to ``in_flight``: at least one, at most ``count`` and a batch."""
        with self.modifying():
            size = sum(item.size for item in self.in_flight)
            for source in (self._saved, self._items):
                while source and len(self.in_flight) < min(count, self.limit):
                    size += source[0].size
                    if size > self._batch_bytes and self.in_flight:
                        break
                    # In this order: a reader without the lock looks here first, so it never misses the item.
                    self.in_flight.append(source[0])
                    source.popleft()
                else:
                    continue
                break
            return self.in_flight

    def reserve_rows(self, size: int) -> None:
        """Count ``size`` bytes for in-flight rows, beyond the reserved space."""
        excess = size - self.max_bytes + self._limit_bytes
        if excess <= self._bytes_of_rows:
            return
        with self.modifying():
            self._release_rows()
            self._bytes_of_rows = excess
            self._bytes += excess
            is_first = self._drop_excess(0)
        if is_first:
            self.on_drop()

    def put_back(self) -> None:
        """Return unwritten in-flight items to the front of the queue."""
        with self.modifying():
            waiting = [item for item in self.in_flight if not _is_abandoned(item)]
            self._items.extendleft(reversed(waiting))
            self.in_flight = []
            self._release_rows()
            is_first = self._drop_excess(0)
        if is_first:
            self.on_drop()

    def remove_in_flight(self, items: Iterable[Item]) -> None:
        """Remove finished items; call it inside ``modifying``."""
        removed = {id(item) for item in items}
        size = sum(item.size for item in self.in_flight if id(item) in removed)
        self._bytes -= size
        self.in_flight = [item for item in self.in_flight if id(item) not in removed]

    def clear_in_flight(self) -> None:
        """Remove the finished in-flight items."""
        with self.modifying():
            self.remove_in_flight(self.in_flight)
            self._release_rows()
            self._dropping = self._dropping and len(self) > 0
            self.lock.notify_all()

    def _release_rows(self) -> None:
        self._bytes -= self._bytes_of_rows
        self._bytes_of_rows = 0

    def unwritten(self) -> list[Item]:
        """Return the waiting and the in-flight items."""
        waiting = [*self._saved.copy(), *self._items.copy()]
        return [*self.in_flight, *waiting]

    def markers(self) -> list[FlushMarker]:
        """Return each ``FlushMarker`` at which a flush waits."""
        return [item for item in self.unwritten() if isinstance(item, FlushMarker) and not item.is_abandoned]

    def _is_full(self, size: int) -> bool:
        # Waiting threads leave slots for unwritten in-flight items. Otherwise the oldest items are dropped
        # when they come back, and these are the in-flight items.
        in_flight = len(self.in_flight) if self.max_wait > 0 else 0
        return len(self._items) + in_flight >= self.limit or self._bytes + size > self._limit_bytes

    def _free_space(self, item: Snapshot) -> bool:
        self.waking.request_write()
        fits = item.size <= self._largest_item
        # A destructor in the middle of a change, which removes the items it has seen.
        if fits and self.sections.defer(self._drop_later):
            return True
        if fits and self.max_wait > 0 and self.may_wait() and self._wait_for_slot(item.size, self.max_wait):
            return True
        with self.modifying():
            if fits:
                is_first = self._drop_excess(item.size, slots=1)
                fits = self._bytes + item.size <= self._limit_bytes
            else:
                is_first = not self._dropping
            if not fits:  # too large, or the in-flight items leave no space
                self.dropped += isinstance(item, SPANS)
                is_first = is_first or not self._dropping
                self._dropping = True
        if is_first:
            self.on_drop()
        return fits

    def _drop_later(self) -> None:
        with self.modifying():
            is_first = self._drop_excess(0)
        if is_first:
            self.on_drop()

    def _drop_excess(self, size: int, slots: int = 0) -> bool:
        """Drop the oldest spans; return whether a series of drops starts."""
        was_dropping = self._dropping
        while len(self._items) + slots > self.limit or self._bytes + size > self._limit_bytes:
            if self._drop_oldest() is None and not self._drop_oldest_trace(size):
                break
            self._dropping = True
        return self._dropping and not was_dropping

    def _drop_oldest_trace(self, size: int) -> bool:
        if not self._saved or self._bytes + size <= self._limit_bytes:
            return False
        self._bytes -= self._saved.popleft().size
        return True

    def _wait_for_slot(self, size: int, seconds: float) -> bool:
        begun = time.monotonic()
        with self.lock:
            while self._is_full(size):
                waited = time.monotonic() - begun
                if waited >= seconds or (waited >= _START_SECONDS and not self.is_served()):
                    return False
                self.lock.wait(min(seconds - waited, _START_SECONDS))
        return True

    def _drop_oldest(self) -> SpanSnapshot | SettledSpan | CapturedRun | None:
        while self._items:
            item = self._items.popleft()
            if isinstance(item, (*SPANS, CapturedRun)):
                self._bytes -= item.size
                self.dropped += isinstance(item, SPANS)
                return item
            self._saved.append(item)
            if len(self._saved) > max(self.limit, _TRACES_KEPT):
                self._bytes -= self._saved.popleft().size
        return None


def _is_abandoned(item: Item) -> bool:
    return isinstance(item, FlushMarker) and item.is_abandoned
