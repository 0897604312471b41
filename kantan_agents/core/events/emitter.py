"""``Emitter``: numbers and delivers the events of one run."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import Awaitable, Sequence
from contextvars import ContextVar
from datetime import datetime, timezone
from threading import Lock
from typing import Any

import anyio

from kantan_agents.core.events.base import Outcome
from kantan_agents.core.events.kinds import Event
from kantan_agents.core.events.observers import Handler, OnlyKinds, WithRawEvents, everywhere
from kantan_agents.core.events.of_models import RawResponseEvent
from kantan_agents.support.log import get_logger

_ERRORS = 20  # logged errors of observers, per run
_log = get_logger("kantan_agents.events")

_notifying: ContextVar[Emitter | None] = ContextVar("kantan_agents_notifying", default=None)
"""The emitter whose handler this task is in."""


class Emitter:
    """Numbers the events of one run and passes each to all handlers before the next one."""

    def __init__(
        self,
        run_id: str,
        parent_run_id: str | None,
        agent: str,
        handlers: tuple[Handler, ...],
        parent: Emitter | None = None,
        raw_handlers: tuple[Handler, ...] = (),
    ) -> None:
        self.run_id = run_id
        self.parent = parent
        self.parent_run_id = parent_run_id
        self.agent = agent
        self.handlers = handlers
        self.raw_handlers = raw_handlers
        self._kinds = _kinds_for(handlers)
        self._loop = asyncio.get_running_loop()
        self._sequence = 0
        self._numbering = Lock()
        self._deliveries: deque[tuple[Handler, Event]] = deque()
        self._added = 0
        self._lock = asyncio.Lock()
        self._queued = 0
        self._is_over = False
        self._failures: dict[str, int] = {}

    def wants(self, *kinds: type[Event]) -> bool:
        """Return whether any handler receives one of these classes; if not, the run omits the code."""
        return self._kinds is None or not self._kinds.isdisjoint(kinds)

    async def emit(
        self, kind: type[Event], *, agent: str | None = None, internal: bool = False, **fields: Any
    ) -> None:
        """Emit an event in order, even if this call is canceled, unless the run is over."""
        pending = self.begin_emit(kind, agent or self.agent, internal=internal, **fields)
        if pending is not None:
            await pending

    def begin_emit(
        self, kind: type[Event], agent: str, *, internal: bool, **fields: Any
    ) -> Awaitable[None] | None:
        """Emit an event, but return an awaitable only for async handlers.

        Coroutines for 1,000 deltas lengthen a run by 4 % (``python -m benchmarks --only streaming``).
        """
        if self._is_over or not self.wants(kind):
            return None
        return self._deliver(self._add(kind, agent, internal, fields))

    def close(self) -> None:
        """Stop emitting: a thread of the run may outlive it."""
        self._is_over = True
        for error, times in self._failures.items():
            if times > 1:
                _log.error("observer failed again", run_id=self.run_id, error=error, times=times - 1)
        self._failures.clear()

    async def emit_end(
        self, kind: type[Event], *, agent: str | None = None, internal: bool = False, **fields: Any
    ) -> None:
        """Emit the event of an end, despite cancellations, ``SystemExit`` or ``KeyboardInterrupt``."""
        if self._is_over or not self.wants(kind):
            return
        count = self._add(kind, agent or self.agent, internal, fields)
        raised: BaseException | None = None
        deliver = self._deliver
        while True:
            try:
                pending = deliver(count)
                if pending is not None:
                    with anyio.CancelScope(shield=True):
                        await pending
                break
            except GeneratorExit:
                raise  # a coroutine that is being closed must not await
            except BaseException as error:  # noqa: BLE001 - raised below
                if raised is None or isinstance(raised, asyncio.CancelledError):
                    raised = error
                deliver = self._deliver_in_turn
        if raised is not None:
            raise raised

    def _add(self, kind: type[Event], agent: str, internal: bool, fields: dict[str, Any]) -> int:
        """Return the total number of queued deliveries."""
        handlers = self.raw_handlers if kind is RawResponseEvent else self.handlers
        with self._numbering:
            self._sequence += 1
            event = kind(
                run_id=self.run_id,
                parent_run_id=self.parent_run_id,
                agent=agent,
                sequence=self._sequence,
                time=datetime.now(timezone.utc),
                internal=internal,
                **fields,
            )
            wanting = [one for one in handlers if not isinstance(one, OnlyKinds) or kind in one.kinds]
            self._deliveries.extend([(handler, event) for handler in wanting])
            self._added += len(wanting)
            return self._added

    def _deliver(self, count: int) -> Awaitable[None] | None:
        if asyncio.get_running_loop() is not self._loop:
            # A sync run inside a tool has its own loop, and this loop may wait for that run.
            asyncio.run_coroutine_threadsafe(self._deliver_in_turn(count), self._loop)
            return None
        if self._queued or self._lock.locked():
            return self._deliver_in_turn(count)
        pending = self._deliver_until_async(count)
        return None if pending is None else self._deliver_rest_locked(pending, count)

    async def _deliver_in_turn(self, count: int) -> None:
        """Make the first ``count`` deliveries after earlier senders."""
        self._queued += 1
        try:
            async with self._lock:
                await self._deliver_rest(self._deliver_until_async(count), count)
        finally:
            self._queued -= 1

    async def _deliver_rest_locked(self, pending: _Pending, count: int) -> None:
        async with self._lock:  # free, so this does not wait
            await self._deliver_rest(pending, count)

    async def _deliver_rest(self, pending: _Pending | None, count: int) -> None:
        before = _notifying.get()
        while pending is not None:
            _notifying.set(self)
            try:
                await self._await_handler(*pending)
            finally:
                _notifying.set(before)
            pending = self._deliver_until_async(count)

    def _deliver_until_async(self, count: int) -> _Pending | None:
        """Make the first ``count`` deliveries; stop at an async handler and return its awaitable.

        Other tasks' deliveries must not be interrupted.
        """
        before, deliveries = _notifying.get(), self._deliveries
        _notifying.set(self)
        try:
            while deliveries and self._added - len(deliveries) < count:
                handler, event = deliveries.popleft()
                try:
                    returned = handler(event)
                except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - must not break the run
                    self._log_failure(event, error)
                    continue
                if returned is not None and inspect.isawaitable(returned):
                    return returned, event
        finally:
            _notifying.set(before)
        return None

    async def _await_handler(self, returned: Awaitable[None], event: Event) -> None:
        try:
            await returned
        except asyncio.CancelledError as error:
            if _is_being_cancelled():
                raise
            self._log_failure(event, error)  # the handler waited for something that was cancelled
        except Exception as error:  # noqa: BLE001 - must not break the run
            self._log_failure(event, error)

    def _log_failure(self, event: Event, error: BaseException) -> None:
        """Log a failure, but only count repeated errors."""
        key = text = repr(error)
        if key not in self._failures and len(self._failures) >= _ERRORS:
            key = "other errors"
        times = self._failures[key] = self._failures.get(key, 0) + 1
        if times == 1 or self._is_over:
            _log.error("observer failed", event_type=event.type, run_id=event.run_id, error=text)


_Pending = tuple[Awaitable[None], Event]


def _is_being_cancelled() -> bool:
    cancelling = getattr(asyncio.current_task(), "cancelling", None)  # new in Python 3.11
    return cancelling is None or cancelling() > 0


def outcome_of(error: BaseException | None) -> Outcome:
    """Return the outcome to report for ``error``."""
    if error is None:
        return "finished"
    return "cancelled" if isinstance(error, (asyncio.CancelledError, GeneratorExit)) else "failed"


def emitter_for(
    run_id: str,
    agent: str,
    *,
    parent: tuple[str, Emitter | None] | None = None,
    handlers: Sequence[Handler] = (),
) -> Emitter | None:
    """Return the emitter of a run with handlers.

    It includes the parent's handlers, unless one of them starts this run.
    """
    if parent is None and not handlers and not everywhere.handlers:
        return None
    parent_id, above = parent or (None, None)
    if _is_in_handler_of(above):
        above = None  # the parent waits for this handler and cannot deliver
    inherited, raw = ((), ()) if above is None else (above.handlers, above.raw_handlers)
    distinct: list[Handler] = []
    for handler in (*inherited, *handlers, *everywhere.handlers):
        if isinstance(handler, WithRawEvents):
            handler = handler.handler  # noqa: PLW2901 - subscribed twice, it still receives each event once
            raw = (*(known for known in raw if known != handler), handler)
        if not any(handler == known for known in distinct):
            distinct.append(handler)
    if not distinct:
        return None
    return Emitter(run_id, parent_id, agent, tuple(distinct), above, raw)


def _kinds_for(handlers: Sequence[Handler]) -> frozenset[type] | None:
    found: set[type] = set()
    for handler in handlers:
        if not isinstance(handler, OnlyKinds):
            return None
        found |= handler.kinds
    return frozenset(found)


def _is_in_handler_of(emitter: Emitter | None) -> bool:
    notifying = _notifying.get()
    while emitter is not None and emitter is not notifying:
        emitter = emitter.parent
    return emitter is not None


class Stopwatch:
    """Measures seconds since its creation."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """The elapsed seconds."""
        return time.perf_counter() - self._start
