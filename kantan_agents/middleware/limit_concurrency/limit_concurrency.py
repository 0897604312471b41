"""``LimitConcurrency``: limits concurrent model calls or runs."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Literal, get_args

import anyio
from agents import ModelResponse, custom_span

from kantan_agents.core.interception import Middleware, ModelCall, ModelNext, end_run_with
from kantan_agents.core.pipeline import Next, Run
from kantan_agents.errors import InvalidOptionError, KantanAgentsError, QueueFullError, QueueTimeoutError
from kantan_agents.middleware.keys import Key, KeyOf, Per
from kantan_agents.middleware.limit_concurrency.places import (
    ConcurrencyStats,
    HeldPlace,
    Places,
    Waiter,
    Window,
)
from kantan_agents.middleware.limit_concurrency.rate_limits import is_overload, pause_after, pause_of_answer
from kantan_agents.models.answer_headers import read_answer_headers
from kantan_agents.support.arguments import checked_bool, checked_int, checked_number

Limited = Literal["model_calls", "runs"]
"""The operations that ``LimitConcurrency`` limits."""

SPAN = "wait_for_place"

_held: ContextVar[tuple[tuple[Any, HeldPlace], ...]] = ContextVar("kantan_agents_places", default=())
"""The slots of this task, and of runs or calls around it."""


class LimitConcurrency(Middleware):
    """Makes at most ``n`` model calls at the same time, over all runs that share this object.

    Further calls wait. The keys, usually tenants, take turns: the next free slot goes to the key that has
    waited longest for one, so a tenant with a thousand calls does not block the others. Within a key, the
    first call comes first.

    By default it limits model calls, because providers limit requests. A run that waits for a tool, a person
    or another run then blocks no slot. ``of="runs"`` limits whole runs, which bounds the memory and the tools
    of a service as well. A run inside a run that holds a slot needs none.

    It adapts to rate limits: after status 429, 503 or 529, half as many calls are made at the same time, and
    one more each time that as many were answered, up to ``n``. If the provider states how long to wait
    (``Retry-After``, or the reset time of a used-up limit), no call of this key starts before, for at most a
    minute. If the headers of an answer state that nothing is left of a limit (OpenAI's ``x-ratelimit-*``,
    Anthropic's ``anthropic-ratelimit-*``), the calls of this key start one by one, each when one request or a
    tenth of the tokens is back, until an answer states that something is left.

    A replay does not wait.

    Args:
        n: Number of calls or runs at the same time.
        per: Where the key of a run is: a path in its context such as ``"tenant"`` or ``"user.team"``, or a
            function of the context. None for one queue. Runs without a key have a separate queue.
        of: The limited operations: ``"model_calls"`` or ``"runs"``.
        each: Number that one key may make at the same time; None for no further limit.
        max_waiting: Number that may wait for each key. One more is E173.
        max_wait: Seconds that one may wait, including pauses; longer is E174. None for no limit.
        adaptive: Whether to adapt to rate limits; if not, nothing pauses either.

    Raises:
        InvalidOptionError: E75, an option has an invalid value.
    """

    def __init__(
        self,
        n: int,
        per: Per = "tenant",
        *,
        of: Limited = "model_calls",
        each: int | None = None,
        max_waiting: int = 100,
        max_wait: float | None = 60.0,
        adaptive: bool = True,
    ) -> None:
        if of not in get_args(Limited):
            raise InvalidOptionError(option="of", reason=f'must be "model_calls" or "runs", not {of!r}')
        self.n = checked_int("n", n, 1)
        self.of = of
        self._key = KeyOf("LimitConcurrency", per)
        self._max_wait = None if max_wait is None else checked_number("max_wait", max_wait)
        self._adaptive = checked_bool("adaptive", adaptive)
        self._places = Places(
            Window(self.n, adapts=self._adaptive),
            None if each is None else checked_int("each", each, 1),
            checked_int("max_waiting", max_waiting, 0),
        )
        # Only one method is wrapped, so an agent may have one limit for model calls and one for runs without
        # names.
        unwrapped = "run" if of == "model_calls" else "model_call"
        setattr(self, unwrapped, getattr(Middleware, unwrapped).__get__(self))

    def stats(self) -> ConcurrencyStats:
        """Return the running and waiting calls."""
        return self._places.stats()

    async def run(self, run: Run, call_next: Next) -> None:
        """With ``of="runs"``, wait for a slot.

        Raises:
            QueueFullError: E173, too many runs of this key wait.
            QueueTimeoutError: E174, no slot was free in time.
            RunKeyError: E175, the key cannot be used.
        """
        async with self._place(run):
            await call_next(run)

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        """With ``of="model_calls"``, wait for a slot.

        Raises:
            QueueFullError: E173, too many calls of this key wait.
            QueueTimeoutError: E174, no slot was free in time.
            RunKeyError: E175, the key cannot be used.
        """
        async with self._place(call.run):
            return await call_next(call)

    @asynccontextmanager
    async def _place(self, run: Run) -> AsyncIterator[None]:
        is_replay = run._tape is not None and not run._tape.asks_models
        has_place = any(owner is self and place.is_open for owner, place in _held.get())
        if is_replay or has_place:
            yield
            return
        try:
            key = self._key.of(run)
            place = await self._taken(run, key)
        except KantanAgentsError as error:
            # Otherwise the SDK turns an error inside an agent used as a tool into text for the outer model.
            end_run_with(run, error)
            raise
        token = _held.set((*_held.get(), (self, place)))
        is_overloaded: bool | None = None
        pause = 0.0
        try:
            with read_answer_headers(partial(self._read_headers, key)):
                yield
            is_overloaded = False
        except Exception as error:
            if is_overload(error):
                is_overloaded, pause = True, pause_after(error) if self._adaptive else 0.0
            raise
        finally:
            self._places.leave(place, is_overloaded=is_overloaded, pause=pause)
            _held.reset(token)

    def _read_headers(self, key: Key, headers: Mapping[str, str]) -> None:
        if self._adaptive:
            self._places.keep_apart(key, pause_of_answer(headers))

    async def _taken(self, run: Run, key: Key) -> HeldPlace:
        found = self._places.enter(key)
        if isinstance(found, HeldPlace):
            return found
        what = self.of.replace("_", " ")
        if isinstance(found, int):
            raise QueueFullError(key=key, what=what, waiting=found, limit=self._places.limit)
        data = {"of": self.of, "key": key if run.records_sensitive_data else None}
        try:
            with custom_span(SPAN, data), anyio.move_on_after(self._max_wait):
                await self._wait(found)
        except BaseException:  # a cancellation must leave the queue as well
            place = self._places.withdraw(found)
            if place is not None:
                self._places.leave(place, is_overloaded=None)
            raise
        place = self._places.withdraw(found, timed_out=True)
        if place is None:
            seconds = math.inf if self._max_wait is None else self._max_wait
            raise QueueTimeoutError(key=key, what=what, seconds=seconds, limit=self._places.limit)
        return place

    async def _wait(self, waiter: Waiter) -> None:
        while waiter.place is None:
            waiter.signal.clear()
            with anyio.move_on_after(self._places.pause_of(waiter.key)):
                if waiter.place is None:
                    await waiter.signal.wait()
            self._places.serve()

    def __repr__(self) -> str:
        stats = self.stats()
        of = "" if self.of == "model_calls" else f", of={self.of!r}"
        limit = "" if stats.limit == self.n else f", limit={stats.limit}"
        return (
            f"LimitConcurrency({self.n}, per={self._key!r}{of}{limit}, "
            f"running={stats.running}, waiting={stats.waiting})"
        )
