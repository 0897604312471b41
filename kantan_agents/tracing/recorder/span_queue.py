"""The bounded queue between the threads that end spans and the one that writes them.

In the usual case, appending consists of operations that are atomic in the interpreter, so it needs no lock. A
signal handler or a destructor may therefore end a span while another span is being appended. Only taking
items out needs the lock.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs

from kantan_agents.tracing.recorder.sections import Sections
from kantan_agents.tracing.recorder.snapshot import SpanSnapshot, TraceSnapshot

# At least this many traces whose spans were dropped are kept: they are small, and needed to find other spans.
_TRACES_KEPT = 10_000


# The writer's thread may be unable to start before the waiting thread continues: the wait may happen in a
# destructor that runs while its thread holds a lock of the ``threading`` module.
_START_SECONDS = 2.0


class Wake:
    """An event for one waiting thread; ``set`` never blocks and is safe in signal handlers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        """Wake the waiting thread, or the next one that waits."""
        try:
            self._lock.release()
        except RuntimeError:
            return  # set already

    def wait(self, seconds: float) -> bool:
        """Wait until the event is set, and clear it; return False after ``seconds``."""
        return self._lock.acquire(timeout=min(max(0.0, seconds), threading.TIMEOUT_MAX))


class FlushMarker:
    """A position in the queue; a flush waits here until everything before it is written.

    Attributes:
        is_abandoned: Whether the flush no longer waits.
    """

    def __init__(self) -> None:
        self.is_abandoned = False
        self._wake = Wake()
        self._written = False

    def resolve(self, *, written: bool) -> None:
        """Set whether everything before the marker is written or cannot be written, and wake the flush."""
        self._written = written
        self._wake.set()

    def wait(self, seconds: float) -> bool:
        """Return whether everything before the marker was written within ``seconds``."""
        self._wake.wait(seconds)
        self.is_abandoned = True
        return self._written


Item = TraceSnapshot | SpanSnapshot | FlushMarker


@attrs.define(eq=False)
class SpanQueue:
    """A bounded queue of snapshots and flush markers.

    Attributes:
        limit: How many items may wait.
        max_bytes: How many bytes the waiting items may have while they cannot be written.
        max_wait: Seconds that a thread waits while the queue is full; then the oldest span is dropped.
        may_wait: Returns whether the calling thread may wait for the writer at all; starts the writer.
        is_served: Returns whether the writer's thread runs.
        on_drop: Called after the first of a series of spans has been dropped.
        sections: The threads that hold a lock of the recorder.
        dropped: Number of spans dropped so far.
        in_flight: The items that the writer is writing.
        lock: Held while items are taken out.
        version: Odd during a change. A read is consistent if it is even and the same before and after.
        wake: Wakes the writer.
        sleeping: Whether the writer waits for work.
        urgent: Whether the writer should write at once.
    """

    limit: int
    max_bytes: int
    max_wait: float
    may_wait: Callable[[], bool]
    is_served: Callable[[], bool]
    on_drop: Callable[[], None]
    sections: Sections
    dropped: int = 0
    in_flight: list[Item] = attrs.field(factory=list)
    lock: threading.Condition = attrs.field(factory=threading.Condition)
    version: int = 0
    wake: Wake = attrs.field(factory=Wake)
    sleeping: bool = False
    urgent: bool = False
    _items: deque[Item] = attrs.field(factory=deque)
    _saved: deque[Item] = attrs.field(factory=deque)
    _dropping: bool = False
    _is_failing: bool = False
    _bytes: int = 0

    def __len__(self) -> int:
        return len(self._items) + len(self._saved)

    @contextmanager
    def modifying(self) -> Iterator[None]:
        """Hold the lock, with ``version`` odd: waiting, in-flight or dropped items are about to change."""
        with self.sections.entered(), self.lock:
            self.version += 1
            try:
                yield
            finally:
                self.version += 1

    def put(self, item: Item) -> None:
        """Append ``item``; if the queue is full and stays full, drop the oldest span."""
        if self._is_full():
            self._free_slot()
        if self._is_failing:
            self._count_bytes(item)
        self._items.append(item)
        if self.sleeping:
            self.wake.set()
        elif len(self._items) == self.limit // 2:
            self.request_write()

    def put_marker(self) -> FlushMarker:
        """Append a flush marker, request a write, and return the marker."""
        marker = FlushMarker()
        self._items.append(marker)
        self.request_write()
        return marker

    def request_write(self) -> None:
        """Make the writer write at once."""
        self.urgent = True
        self.wake.set()

    def take(self, count: int) -> list[Item]:
        """Move the oldest items, at most ``count`` and at most the limit, to ``in_flight``; return these."""
        with self.modifying():
            for source in (self._saved, self._items):
                while source and len(self.in_flight) < min(count, self.limit):
                    # In this order: a reader without the lock looks here first and then at `in_flight`, so it
                    # never misses the item.
                    self.in_flight.append(source[0])
                    source.popleft()
            return self.in_flight

    def put_back(self) -> None:
        """Return the in-flight items, which could not be written, to the front of the queue."""
        with self.modifying():
            self._items.extendleft(reversed(self.in_flight))
            self.in_flight = []
            self._is_failing = True
            self._bytes = sum(_size(item) for item in self._items.copy())
            is_first = self._drop_excess()
        if is_first:
            self.on_drop()

    def clear_in_flight(self) -> None:
        """Remove the in-flight items, which are written or discarded."""
        with self.modifying():
            self.in_flight = []
            self._is_failing = False
            self._dropping = self._dropping and len(self) > 0
            self.lock.notify_all()

    def unwritten(self) -> list[Item]:
        """Return a list of the waiting and the in-flight items."""
        waiting = [*self._saved.copy(), *self._items.copy()]
        return [*self.in_flight, *waiting]

    def markers(self) -> list[FlushMarker]:
        """Return the markers at which a flush waits."""
        return [item for item in self.unwritten() if isinstance(item, FlushMarker) and not item.is_abandoned]

    def _count_bytes(self, item: Item) -> None:
        with self.modifying():
            self._bytes += _size(item)
            is_first = self._drop_excess()
        if is_first:
            self.on_drop()

    def _drop_excess(self) -> bool:
        """Drop the oldest spans until the limits hold; return whether a series of drops begins here."""
        was_dropping = self._dropping
        while len(self._items) > self.limit or self._bytes > self.max_bytes:
            dropped = self._drop_oldest()
            if dropped is None:
                break
            self._bytes -= _size(dropped)
            self._dropping = True
        return self._dropping and not was_dropping

    def _is_full(self) -> bool:
        # The in-flight items come back if they cannot be written. Threads that wait leave slots for them.
        # Otherwise the oldest are dropped when they come back, and these are the in-flight items.
        in_flight = len(self.in_flight) if self.max_wait > 0 else 0
        return len(self._items) + in_flight >= self.limit

    def _free_slot(self) -> None:
        self.request_write()
        if self.max_wait > 0 and self.may_wait() and self._wait_for_slot(self.max_wait):
            return
        with self.modifying():
            is_first = self._is_full() and self._drop_oldest() is not None and not self._dropping
            self._dropping = self._dropping or is_first
        if is_first:
            self.on_drop()

    def _wait_for_slot(self, seconds: float) -> bool:
        begun = time.monotonic()
        with self.lock:
            while self._is_full():
                waited = time.monotonic() - begun
                if waited >= seconds or (waited >= _START_SECONDS and not self.is_served()):
                    return False
                self.lock.wait(min(seconds - waited, _START_SECONDS))
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
    return 0 if isinstance(item, FlushMarker) else len(item.packed)
