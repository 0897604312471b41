"""``Places``: gives slots to waiting tasks; keys take turns. Thread-safe.

``Window`` adapts their number by additive increase and multiplicative decrease (Chiu and Jain, 1989), so that
clients of one provider converge to fair shares.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from threading import Lock
from time import monotonic

import attrs

from kantan_agents.middleware.keys import Key
from kantan_agents.middleware.signal import Signal


@attrs.frozen(kw_only=True)
class KeyStats:
    """The running and waiting calls of one key, such as a tenant.

    Attributes:
        running: Calls in progress.
        waiting: Calls that wait for a slot.
        paused: Seconds until the next one may start, because a provider requested it or a limit is used up.
    """

    running: int
    waiting: int
    paused: float


@attrs.frozen(kw_only=True)
class ConcurrencyStats:
    """The running and waiting calls of a ``LimitConcurrency``.

    Attributes:
        running: Calls in progress.
        waiting: Calls that wait for a slot.
        limit: Calls that are allowed at the same time now: ``n``, or fewer after a rate limit.
        refused: Calls that were rejected because too many waited (E173).
        timed_out: Calls that waited too long (E174).
        keys: The same by key, for keys with running, waiting or paused calls.
    """

    running: int
    waiting: int
    limit: int
    refused: int
    timed_out: int
    keys: dict[Key, KeyStats]


@attrs.define(eq=False)
class HeldPlace:
    """A slot in use, from a round of the window."""

    key: Key
    round: int
    is_open: bool = True


@attrs.define(eq=False)
class Waiter:
    """A task that waits for a slot."""

    key: Key
    signal: Signal = attrs.field(factory=Signal)
    place: HeldPlace | None = None


class Places:
    """The slots and the queues for them; ``each`` and ``max_waiting`` are limits for each key."""

    def __init__(self, window: Window, each: int | None, max_waiting: int) -> None:
        self._window = window
        self._each = each
        self._max_waiting = max_waiting
        self._lock = Lock()
        self._running: Counter[Key] = Counter()
        self._count = 0
        self._queues: OrderedDict[Key, deque[Waiter]] = OrderedDict()
        self._paused_until: dict[Key, float] = {}
        self._apart: dict[Key, float] = {}  # seconds between two calls, while a limit is used up
        self._refused = self._timed_out = 0

    @property
    def limit(self) -> int:
        """Number of slots."""
        return self._window.size

    def enter(self, key: Key) -> HeldPlace | Waiter | int:
        """Return a slot, a waiter, or the number of tasks if too many wait."""
        with self._lock:
            self._serve()
            queue = self._queues.get(key)
            if queue is None and self._count < self._window.size and self._may_begin(key):
                return self._given(key)
            if queue is not None and len(queue) >= self._max_waiting:
                self._refused += 1
                return len(queue)
            if self._max_waiting == 0:
                self._refused += 1
                return 0
            waiter = Waiter(key)
            self._queues.setdefault(key, deque()).append(waiter)
            return waiter

    def leave(self, place: HeldPlace, *, is_overloaded: bool | None, pause: float = 0.0) -> None:
        """Take a slot back, and give it to the next task.

        No call of this key may start for ``pause`` seconds.
        """
        with self._lock:
            place.is_open = False
            self._take_back(place.key)
            if is_overloaded is not None:
                self._window.learn(place.round, is_overloaded=is_overloaded)
            if pause > 0:
                self._pause(place.key, pause)
            self._serve()

    def withdraw(self, waiter: Waiter, *, timed_out: bool = False) -> HeldPlace | None:
        """Stop waiting; return the slot that was given meanwhile, if any."""
        with self._lock:
            if waiter.place is not None:
                return waiter.place
            self._timed_out += timed_out
            queue = self._queues.get(waiter.key)
            if queue is not None and waiter in queue:  # a waiter whose loop is closed is already removed
                queue.remove(waiter)
                if not queue:
                    del self._queues[waiter.key]
        return None

    def serve(self) -> None:
        """Give free slots to waiting tasks."""
        with self._lock:
            self._serve()

    def keep_apart(self, key: Key, seconds: float) -> None:
        """Start one call of this key every ``seconds``; 0 stops this."""
        if seconds > 0:
            with self._lock:
                self._apart[key] = seconds
                self._pause(key, seconds)
        elif key in self._apart:
            with self._lock:
                self._apart.pop(key, None)

    def pause_of(self, key: Key) -> float | None:
        """Seconds until the end of the pause; None without one."""
        until = self._paused_until.get(key)
        return None if until is None else max(until - monotonic(), 0.0)

    def stats(self) -> ConcurrencyStats:
        """Return the running and waiting calls."""
        with self._lock:
            self._serve()
            now = monotonic()
            waiting = {key: len(queue) for key, queue in self._queues.items()}
            keys = {
                key: KeyStats(
                    running=self._running.get(key, 0),
                    waiting=waiting.get(key, 0),
                    paused=max(self._paused_until.get(key, now) - now, 0.0),
                )
                for key in dict.fromkeys((*self._running, *waiting, *self._paused_until))
            }
            return ConcurrencyStats(
                running=self._count,
                waiting=sum(waiting.values()),
                limit=self._window.size,
                refused=self._refused,
                timed_out=self._timed_out,
                keys=keys,
            )

    def _serve(self) -> None:
        if self._paused_until:
            now = monotonic()
            for key in [key for key, until in self._paused_until.items() if until <= now]:
                del self._paused_until[key]
                if key not in self._queues and key not in self._running:
                    self._apart.pop(key, None)
        while self._count < self._window.size:
            for key in self._queues:
                if self._may_begin(key):
                    break
            else:
                return
            queue = self._queues[key]
            waiter = queue.popleft()
            if queue:
                self._queues.move_to_end(key)  # the other keys come first now
            else:
                del self._queues[key]
            waiter.place = self._given(key)
            if not waiter.signal.set():  # its event loop is closed
                waiter.place = None
                self._take_back(key)

    def _given(self, key: Key) -> HeldPlace:
        self._count += 1
        self._running[key] += 1
        if key in self._apart:
            self._pause(key, self._apart[key])
        return HeldPlace(key, self._window.round)

    def _take_back(self, key: Key) -> None:
        self._count -= 1
        self._running[key] -= 1
        if not self._running[key]:
            del self._running[key]

    def _may_begin(self, key: Key) -> bool:
        is_full = self._each is not None and self._running.get(key, 0) >= self._each
        return not is_full and key not in self._paused_until

    def _pause(self, key: Key, seconds: float) -> None:
        until = monotonic() + seconds
        self._paused_until[key] = max(until, self._paused_until.get(key, until))
        for waiter in self._queues.get(key, ()):
            waiter.signal.set()  # it reads the new end of the pause


class Window:
    """A number of slots, at first ``most``. Not thread-safe.

    ``round`` counts the decreases: the outcome of a call from an earlier round does not concern the new size.
    """

    def __init__(self, most: int, *, adapts: bool) -> None:
        self._most = most
        self._adapts = adapts
        self._size = float(most)
        self.round = 0

    @property
    def size(self) -> int:
        """Number of slots."""
        return int(self._size)

    def learn(self, begun_in: int, *, is_overloaded: bool) -> None:
        """Learn from a call that started in a round."""
        if not self._adapts:
            return
        if not is_overloaded:
            # One more slot after as many answers as there are slots.
            self._size = min(self._size + 1 / self._size, float(self._most))
        elif begun_in == self.round:
            self._size = max(self._size / 2, 1.0)
            self.round += 1
