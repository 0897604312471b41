"""What a run tells of itself: events in one order, to everybody who listens."""

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

from kantan_agents.events.kinds import Event, Outcome
from kantan_agents.events.observers import Handler, everywhere
from kantan_agents.support.log import get_logger

_log = get_logger("kantan_agents.events")

_telling: ContextVar[Emitter | None] = ContextVar("kantan_agents_telling", default=None)


class Emitter:
    """Numbers the events of one run and hands each to all handlers before the next.

    Attributes:
        run_id: The run.
        parent: What tells of the run it was started in, None where nobody listens to that one.
        parent_run_id: The run it was started in.
        agent: Name of the agent that was run.
        handlers: Who is told.
    """

    __slots__ = (
        "_added",
        "_is_over",
        "_lock",
        "_loop",
        "_numbering",
        "_queued",
        "_sequence",
        "_waiting",
        "agent",
        "handlers",
        "parent",
        "parent_run_id",
        "run_id",
    )

    def __init__(
        self,
        run_id: str,
        parent_run_id: str | None,
        agent: str,
        handlers: tuple[Handler, ...],
        parent: Emitter | None = None,
    ) -> None:
        self.run_id = run_id
        self.parent = parent
        self.parent_run_id = parent_run_id
        self.agent = agent
        self.handlers = handlers
        self._loop = asyncio.get_running_loop()
        self._sequence = 0
        self._numbering = Lock()
        self._waiting: deque[tuple[Handler, Event]] = deque()
        self._added = 0
        self._lock = asyncio.Lock()
        self._queued = 0
        self._is_over = False

    async def emit(
        self, kind: type[Event], *, agent: str | None = None, internal: bool = False, **fields: Any
    ) -> None:
        """Tell of something that has just happened; nothing once the run is over.

        It has its number, and will be told, even if this is cancelled while handlers take their time.
        """
        slow = self.tell(kind, agent or self.agent, internal=internal, **fields)
        if slow is not None:
            await slow

    def tell(self, kind: type[Event], agent: str, *, internal: bool, **fields: Any) -> Awaitable[None] | None:
        """Do what ``emit`` does, and return what is to be awaited, if anything.

        For what happens hundreds of times in an answer: mostly nobody takes his time, and a coroutine for
        each costs more than the event itself.
        """
        return None if self._is_over else self._begin(self._add(kind, agent, internal, fields))

    def close(self) -> None:
        """Tell nothing more: the run is over, though a thread it has started may still go on."""
        self._is_over = True

    async def emit_end(
        self, kind: type[Event], *, agent: str | None = None, internal: bool = False, **fields: Any
    ) -> None:
        """Tell how something ended; also while the run is being cancelled, and to the last handler."""
        if self._is_over:
            return
        number = self._add(kind, agent or self.agent, internal, fields)
        cancelled: asyncio.CancelledError | None = None
        slow = self._begin(number)
        while slow is not None:
            try:
                with anyio.CancelScope(shield=True):
                    await slow
                slow = None
            except asyncio.CancelledError as error:  # noqa: PERF203 - as often as somebody cancels
                cancelled, slow = error, self._in_turn(number)
        if cancelled is not None:
            raise cancelled

    def _add(self, kind: type[Event], agent: str, internal: bool, fields: dict[str, Any]) -> int:
        """Number an event, and return how much is to be handed out until all handlers have it."""
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
            self._waiting.extend([(handler, event) for handler in self.handlers])
            self._added += len(self.handlers)
            return self._added

    def _begin(self, number: int) -> Awaitable[None] | None:
        if asyncio.get_running_loop() is not self._loop:
            # From a sync run inside a tool: this run's loop may be waiting for that very run.
            asyncio.run_coroutine_threadsafe(self._in_turn(number), self._loop)
            return None
        if self._queued or self._lock.locked():
            return self._in_turn(number)
        slow = self._until_slow(number)
        return None if slow is None else self._go_on(slow, number)

    async def _in_turn(self, number: int) -> None:
        """Wait for those who came before, then hand out so much."""
        self._queued += 1
        try:
            async with self._lock:
                await self._rest(self._until_slow(number), number)
        finally:
            self._queued -= 1

    async def _go_on(self, slow: _Slow, number: int) -> None:
        async with self._lock:  # which is free, so nobody comes in between
            await self._rest(slow, number)

    async def _rest(self, slow: _Slow | None, number: int) -> None:
        before = _telling.get()
        while slow is not None:
            _telling.set(self)
            try:
                await _wait_for(*slow)
            finally:
                _telling.set(before)
            slow = self._until_slow(number)

    def _until_slow(self, number: int) -> _Slow | None:
        """Hand out so much of what waits, up to a handler that takes its time; return what to await then.

        No more than one's own and what was before it: whoever tells may be cancelled, and the handlers of
        what others tell are not to be interrupted by that.
        """
        before, waiting = _telling.get(), self._waiting
        _telling.set(self)
        try:
            while waiting and self._added - len(waiting) < number:
                handler, event = waiting.popleft()
                try:
                    told = handler(event)
                except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - must not break the run
                    _say_failed(event, error)
                    continue
                if told is not None and inspect.isawaitable(told):
                    return told, event
        finally:
            _telling.set(before)
        return None


_Slow = tuple[Awaitable[None], Event]
"""What a handler has returned to be awaited, and what it was told."""


async def _wait_for(told: Awaitable[None], event: Event) -> None:
    try:
        await told
    except asyncio.CancelledError as error:
        if _is_being_cancelled():
            raise
        _say_failed(event, error)  # something it waited for was cancelled
    except Exception as error:  # noqa: BLE001 - must not break the run
        _say_failed(event, error)


def _is_being_cancelled() -> bool:
    cancelling = getattr(asyncio.current_task(), "cancelling", None)  # new in Python 3.11
    return cancelling is None or cancelling() > 0


def _say_failed(event: Event, error: BaseException) -> None:
    _log.error("observer failed", event_type=event.type, run_id=event.run_id, error=repr(error))


def outcome_of(error: BaseException | None) -> Outcome:
    """Return how something ended that ended with ``error``."""
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
    """Return what tells of a run, None if nobody listens.

    Args:
        run_id: The run.
        agent: Name of its agent.
        parent: Id and emitter of the run it is started in; whoever listens to that one hears this one,
            unless an observer of that run starts it.
        handlers: Who else listens.
    """
    if parent is None and not handlers and not everywhere.handlers:
        return None
    parent_id, above = parent or (None, None)
    if _is_told_now(above):
        above = None  # an observer starts it, and whoever tells the observer waits for it
    listening: list[Handler] = []
    for handler in (*(above.handlers if above is not None else ()), *handlers, *everywhere.handlers):
        if not any(handler == known for known in listening):
            listening.append(handler)
    if not listening:
        return None
    return Emitter(run_id, parent_id, agent, tuple(listening), above)


def _is_told_now(emitter: Emitter | None) -> bool:
    """Whether an observer runs, in this task, to whom this emitter tells something or one it is inside of."""
    telling = _telling.get()
    while emitter is not None and emitter is not telling:
        emitter = emitter.parent
    return emitter is not None


class Stopwatch:
    """Seconds since it was made."""

    __slots__ = ("_start",)

    def __init__(self) -> None:
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        return time.perf_counter() - self._start
