"""The middleware ``Hedge``."""

from __future__ import annotations

import math
import re
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Hashable
from threading import Lock
from typing import Any, Final

import anyio
import attrs
from agents import ModelResponse, custom_span
from cachetools import LRUCache

from kantan_agents.agent.bridge.model_calls import target_of
from kantan_agents.core.interception import (
    Middleware,
    ModelCall,
    ModelNext,
    forget_pending_error,
    pending_error,
)
from kantan_agents.errors import InvalidOptionError, KantanAgentsError
from kantan_agents.middleware.hedge.race import Contender, Race
from kantan_agents.models.origin import name_of, origin_of
from kantan_agents.support.arguments import checked_int, checked_number, shown
from kantan_agents.support.log import get_logger

SPAN: Final = "hedge"

_QUANTILE: Final = re.compile(r"p(\d{1,2}(?:\.\d{1,4})?)")
_LEAST, _PERCENT = 50.0, 100.0
_SAVED: Final = 10.0
_TAKEN_OVER: Final = ("model", "settings", "has_begun", "has_streamed", "broken_off", "_was_sent", "_stored")
_log = get_logger("kantan_agents.middleware")
_MOST_MODELS: Final = 256
_LEAST_CALLS: Final = 20


@attrs.frozen(kw_only=True)
class HedgeStats:
    """The counts of a ``Hedge``.

    Attributes:
        calls: Model calls.
        hedged: Calls that got a second request.
        won: Calls whose second request was faster.
        denied: Calls that got no second request because of ``share``.
    """

    calls: int = 0
    hedged: int = 0
    won: int = 0
    denied: int = 0


class Hedge(Middleware):
    """Makes a second request when the first one is slower than usual, and takes the first answer.

    Models sometimes take many times as long as usual, and an equal request a moment later would have been
    answered sooner. A second request after the 95th percentile of latency shortens the longest waits, for a
    few more requests.

    The slower request is canceled. It may cost nevertheless: the usage of the result and a ``Budget`` before
    this middleware count its input tokens, or all of its tokens if they are known.

    If one request fails, the result of the other one counts. A streamed answer that has started is never
    requested again; for streams, the time until the answer starts counts.

    A replay makes no second request.

    Args:
        after: When the second request is made: a percentile of the latest calls of the same model, from
            ``"p50"``, or a number of seconds. A percentile is known after at least 20 calls.
        share: The largest share of the calls that may get a second request. At most 10 unused ones are saved
            for later.
        window: Number of the latest calls of a model from which the percentile is computed.

    Raises:
        InvalidOptionError: E75, an option has an invalid value.
    """

    def __init__(self, after: str | float = "p95", *, share: float = 0.055, window: int = 500) -> None:
        self.after = after
        self._seconds: float | None = None
        self._latencies: Latencies | None = None
        checked = checked_int("window", window, 20, 100_000)
        if isinstance(after, str):
            self._latencies = Latencies(_quantile(after), checked)
        else:
            self._seconds = checked_number("after", after)
        self.share = checked_number("share", share, above_zero=True)
        if self.share > 1:
            raise InvalidOptionError(option="share", reason=f"must be at most 1, not {shown(share)}")
        self._allowance = Allowance(self.share, _SAVED)
        self._lock = Lock()
        self._stats = HedgeStats()

    def stats(self) -> HedgeStats:
        """Return the counts so far."""
        return self._stats

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        """Make a second request if the first takes longer than usual."""
        if call.run._tape is not None or call._race is not None:
            return await call_next(call)
        try:
            model: Hashable = (origin_of(target_of(call)), call.is_streamed and not call.internal)
        except KantanAgentsError:
            return await call_next(call)  # which raises the error again, unless another middleware handles it
        self._allowance.earn()
        self._count(calls=1)
        delay = self._seconds if self._latencies is None else self._latencies.of(model)
        begun = anyio.current_time()
        race = Race()
        if delay is None:  # no percentile yet: only measure
            first = race.add(call)
            try:
                answer = await call_next(call)
            finally:
                call._race = None
        else:
            first = race.add(_copy(call))
            answer = await self._raced(race, call, call_next, delay)
        self._learn(model, first, begun)
        return answer

    async def _raced(self, race: Race, call: ModelCall, call_next: ModelNext, delay: float) -> ModelResponse:
        async with anyio.create_task_group() as group:
            group.start_soon(race.contenders[0].run, call_next)
            with anyio.move_on_after(delay):
                await race.is_decided.wait()
            if not race.is_decided.is_set() and self._may_hedge():
                group.start_soon(self._second, race.add(_copy(call)), call_next, delay)
            await race.is_over.wait()
        for contender in race.contenders:
            if contender is not race.winner and contender.usage is not None:
                call._other_usage = (*call._other_usage, contender.usage)
        for contender in race.contenders:
            if contender.ends_process and contender.error is not None:
                raise contender.error
        counts = race.winner or race.contenders[0]
        for name in _TAKEN_OVER:
            setattr(call, name, getattr(counts.call, name))
        call._other_usage = (*call._other_usage, *counts.call._other_usage)
        if counts.answer is None:
            assert counts.error is not None
            raise counts.error
        if any(one.error is pending_error(call.run) for one in race.contenders if one.error is not None):
            forget_pending_error(call.run)  # of the other request, which is not needed
        return counts.answer

    async def _second(self, contender: Contender, call_next: ModelNext, delay: float) -> None:
        call = contender.call
        data: dict[str, Any] = {
            "model": call.model if isinstance(call.model, str) else name_of(call.model),
            "after": round(delay, 3),
            "agent": call.agent,
        }
        _log.debug("second request made", run_id=call.run.id, **data)
        with custom_span(SPAN, data):
            await contender.run(call_next)
            data["won"] = contender.race.winner is contender
        if data["won"]:
            self._count(won=1)

    def _may_hedge(self) -> bool:
        if self._allowance.spend():
            self._count(hedged=1)
            return True
        self._count(denied=1)
        return False

    def _learn(self, model: Hashable, first: Contender, begun: float) -> None:
        if self._latencies is None:
            return
        if first.claimed_at is not None:
            self._latencies.add(model, first.claimed_at - begun)
        elif first.is_lost and first.race.winner is not None:
            ended = first.race.winner.claimed_at
            self._latencies.add(model, (anyio.current_time() if ended is None else ended) - begun)

    def _count(self, **more: int) -> None:
        with self._lock:
            changes = {name: getattr(self._stats, name) + number for name, number in more.items()}
            self._stats = attrs.evolve(self._stats, **changes)

    def __repr__(self) -> str:
        stats = self._stats
        return f"Hedge({self.after!r}, share={self.share:g}, calls={stats.calls}, hedged={stats.hedged})"


def _copy(call: ModelCall) -> ModelCall:
    return attrs.evolve(call, tools=list(call.tools), options=dict(call.options), other_usage=())


def _quantile(after: str) -> float:
    found = _QUANTILE.fullmatch(after)
    percent = float(found[1]) if found else 0.0
    if not _LEAST <= percent < _PERCENT:
        reason = f'must be a percentile from "p50" to "p99.9999" or a number of seconds, not {shown(after)}'
        raise InvalidOptionError(option="after", reason=reason)
    return percent / _PERCENT


class Latencies:
    """A quantile of the latest latencies of each model. Thread-safe.

    A canceled request counts with the time until its cancellation. Its real latency is longer, but both are
    above the quantile, which stays the same.
    """

    def __init__(self, quantile: float, window: int) -> None:
        self._quantile = quantile
        self._window = window
        # With fewer, the quantile would be the maximum.
        self._least = max(_LEAST_CALLS, math.ceil(1 / (1 - quantile)))
        self._lock = Lock()
        self._models: LRUCache[Any, tuple[deque[float], list[float]]] = LRUCache(_MOST_MODELS)

    def add(self, model: Hashable, seconds: float) -> None:
        """Store a latency in seconds."""
        with self._lock:
            known = self._models.get(model)
            if known is None:
                known = self._models[model] = (deque(), [])
            latest, in_order = known
            if len(latest) == self._window:
                del in_order[bisect_left(in_order, latest.popleft())]
            latest.append(seconds)
            insort(in_order, seconds)

    def of(self, model: Hashable) -> float | None:
        """Return the quantile; None if too few latencies are known."""
        with self._lock:
            known = self._models.get(model)
            if known is None or len(known[1]) < self._least:
                return None
            return known[1][math.ceil(self._quantile * len(known[1])) - 1]


class Allowance:
    """A token bucket that limits second requests to a share. Thread-safe."""

    def __init__(self, share: float, most: float) -> None:
        self._share = share
        self._most = most
        self._left = 0.0
        self._lock = Lock()

    def earn(self) -> None:
        """Count a request."""
        with self._lock:
            self._left = min(self._left + self._share, self._most)

    def spend(self) -> bool:
        """Whether a second request may be made; counts it."""
        with self._lock:
            if self._left < 1:
                return False
            self._left -= 1
            return True
