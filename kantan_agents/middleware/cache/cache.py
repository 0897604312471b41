"""``Cache``: stored answers for equal requests."""

from __future__ import annotations

import os
import time
from contextvars import ContextVar
from threading import Lock
from typing import Any

import anyio
import attrs
from agents import Model, ModelResponse, custom_span

from kantan_agents.agent.bridge.model_calls import target_of
from kantan_agents.core.interception import Middleware, ModelCall, ModelNext, end_run_with, is_redacted
from kantan_agents.core.pipeline import Run
from kantan_agents.errors import InvalidOptionError, KantanAgentsError
from kantan_agents.middleware.cache.entry import StoredAnswer, packed, request_key, unpacked, why_not_stored
from kantan_agents.middleware.cache.flights import Flights, Seat
from kantan_agents.middleware.cache.sqlite import SQLiteStore
from kantan_agents.middleware.cache.stores import CacheStore, MemoryStore
from kantan_agents.middleware.keys import Key, KeyOf, Per
from kantan_agents.middleware.redact.redact import Redact
from kantan_agents.models.origin import name_of
from kantan_agents.models.structured.requests.request import Request
from kantan_agents.support.arguments import checked_number, shown
from kantan_agents.support.log import get_logger
from kantan_agents.traces.capture import ModelAnswer

SPAN = "cache"

_KEPT_ELSEWHERE = ModelAnswer(())
"""A recording or a journal has the answer."""

_AT_PROVIDER = ("previous_response_id", "conversation_id")
_leading: ContextVar[tuple[str, ...]] = ContextVar("kantan_agents_cache_leading", default=())
_log = get_logger("kantan_agents.middleware")


@attrs.frozen(kw_only=True)
class CacheStats:
    """The counts of a ``Cache`` in this process.

    Attributes:
        hits: Requests that got a stored answer.
        shared: Requests that got the answer of an equal request at the same time.
        misses: Requests that were sent.
        passed: Requests that cannot be cached, and were sent.
        tokens: Tokens that the answers of ``hits`` and ``shared`` took when a model generated them.
    """

    hits: int = 0
    shared: int = 0
    misses: int = 0
    passed: int = 0
    tokens: int = 0


class Cache(Middleware):
    """Answers a repeated request with the stored answer, without calling a model.

    Two requests are equal if they have the same model, provider and URL, instructions, conversation,
    settings, tools with their schemas, handoffs and output schema, and if the client has the same key,
    organization, project, headers, query parameters, cookies, proxy and transport. The name of the agent, the
    code of tools, ``timeout`` and ``max_retries`` do not count. A request without a JSON form is not cached.

    A custom ``Model`` or ``Provider`` is identified by its class and its attribute ``cache_identity``, or
    else by all of its attributes. Attributes that hold objects, local classes, functions that return a key,
    custom transports, request hooks, and a ``Model`` without an attribute ``model`` are compared by object
    identity: after a restart, a file has no answers for them. The client's key is stored only
    as a hash.

    Of equal requests at the same time, one is sent. If it fails, each of the others is sent; if it is
    canceled, one of the others replaces it.

    Only complete answers of models are stored: not answers that were cut off, reject the request, do not fit
    the output type or contain code or MCP calls that the provider ran, and not answers of a conversation that
    the provider stores. An answer in which ``Redact`` finds something is not stored either. Put ``Redact``
    before this middleware; if it is inside, nothing is cached, and a warning is logged.

    A hit has no usage, and middleware inside of this one, such as ``Budget``, does not see it. Streamed runs
    get it as a stream. ``ModelCallFinished.from_cache`` and a span ``cache`` show it. If the store fails, the
    model is called, and a warning is logged on ``kantan_agents.middleware``.

    Args:
        store: Where answers are stored: the path of an SQLite file (at most 1 GiB), a ``CacheStore``, or None
            for the memory of this process (at most 64 MiB).
        ttl: Seconds for which an answer is used.
        per: The tenant of a run: a path in its context such as ``"tenant"`` or ``"user.team"``, or a function
            of the context. A run without a tenant is E175. None: all runs share their answers.
        max_wait: Seconds for which a request waits for an equal one before it is sent as well.

    Raises:
        InvalidOptionError: E75, an option has an invalid value.
    """

    def __init__(
        self,
        store: str | os.PathLike[str] | CacheStore | None = None,
        ttl: float = 3600.0,
        *,
        per: Per = "tenant",
        max_wait: float = 60.0,
    ) -> None:
        self.store = _store(store)
        self.ttl = checked_number("ttl", ttl, above_zero=True)
        self._key = KeyOf("Cache", per)
        self._max_wait = checked_number("max_wait", max_wait)
        self._flights = Flights()
        self._lock = Lock()
        self._stats = CacheStats()
        self._warned: set[str] = set()

    def stats(self) -> CacheStats:
        """Return the counts of this process."""
        return self._stats

    async def clear(self) -> None:
        """Remove all stored answers.

        Raises:
            Exception: Any error of the store.
        """
        await self.store.clear()

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        """Return the stored answer, or make the call and store its answer.

        Raises:
            RunKeyError: E175, the run has no tenant.
        """
        request = Request(call.instructions, call.input, call.settings, call.tools, call.options)
        try:
            model = target_of(call)
        except KantanAgentsError:
            return await call_next(call)  # which raises the error again, unless another middleware handles it
        kept = _kept_elsewhere(call, model, request)
        if kept is not None:
            return await (self._give(call, _KEPT_ELSEWHERE) if kept else call_next(call))
        key = self._request_key(call, request, model, self._tenant(call.run))
        if key is None or key in _leading.get():
            self._count(passed=1)
            return await call_next(call)
        return await self._asked_once(key, call, call_next)

    def _tenant(self, run: Run) -> Key:
        try:
            tenant = self._key.of(run)
            if tenant is None and not self._key.is_shared:
                raise self._key.error("is missing; with per=None, all runs share their answers")
        except KantanAgentsError as error:
            # Otherwise the SDK turns an error inside an agent used as a tool into text for the outer model.
            end_run_with(run, error)
            raise
        return tenant

    def _request_key(self, call: ModelCall, request: Request, model: Model, tenant: Key) -> str | None:
        run = call.run
        if any(call.options.get(name) for name in _AT_PROVIDER) or run.options.get(
            "auto_previous_response_id"
        ):
            return None
        if is_redacted(run) and _redacts_inside(run, self):
            self._warn("Redact is inside Cache, so nothing is cached; put it before")
            return None
        try:
            return request_key(call, request, model, tenant)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:  # E47 is a ValueError
            _log.debug("request not cached", run_id=run.id, error_type=type(error).__name__)
            return None

    async def _asked_once(self, key: str, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        seat = self._flights.board(key)
        if not seat.leads:
            try:
                with anyio.move_on_after(self._max_wait):
                    await seat.signal.wait()
            except BaseException:
                self._flights.leave(seat)
                raise
            if seat.body is not None:
                stored = self._unpacked(key, seat.body)
                if stored is not None:
                    return await self._give_stored(key, call, stored, is_shared=True)
            if not seat.leads:  # the other one has failed, or takes too long
                self._flights.leave(seat)
                answer, _ = await self._asked(key, call, call_next)
                return answer
        return await self._led(key, seat, call, call_next)

    async def _led(self, key: str, seat: Seat, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        token = _leading.set((*_leading.get(), key))
        try:
            body = await self._read(key)
            stored = None if body is None else self._unpacked(key, body)
            if stored is None:
                if body is not None:
                    await self._tried("remove", self.store.remove(key))
                answer, body = await self._asked(key, call, call_next)
        except Exception:
            self._flights.land(seat, None)
            raise
        except BaseException:  # a cancellation does not mean that the request fails
            self._flights.leave(seat)
            raise
        finally:
            _leading.reset(token)
        self._flights.land(seat, body)
        return answer if stored is None else await self._give_stored(key, call, stored, is_shared=False)

    async def _asked(
        self, key: str, call: ModelCall, call_next: ModelNext
    ) -> tuple[ModelResponse, bytes | None]:
        """Return the answer, and its form if it was stored."""
        self._count(misses=1)
        was_sent, call._was_sent = call._was_sent, False
        try:
            answer = await call_next(call)
            reason = why_not_stored(call, answer)
        finally:
            call._was_sent = call._was_sent or was_sent
        body = packed(key, call, answer, time.time()) if reason is None else None
        if body is None:
            _log.debug("answer not stored", run_id=call.run.id, reason=reason or "it has something to redact")
        elif call.run.records_sensitive_data or not self.store.is_persistent:
            await self._tried("write", self.store.write(key, body, self.ttl))
        return answer, body

    async def _read(self, key: str) -> bytes | None:
        found: bytes | None = await self._tried("read", self.store.read(key))
        return found

    async def _tried(self, what: str, work: Any) -> Any:
        try:
            return await work
        except Exception as error:  # noqa: BLE001 - a failing store must not fail a run
            self._warn(f"the cache cannot {what}: {error!r}")
            return None

    def _unpacked(self, key: str, body: bytes) -> StoredAnswer | None:
        try:
            stored = unpacked(key, body)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            _log.warning("a stored answer is damaged, the model is asked", key=key, error=repr(error))
            return None
        return stored if time.time() - stored.stored_at <= self.ttl else None

    async def _give_stored(
        self, key: str, call: ModelCall, stored: StoredAnswer, *, is_shared: bool
    ) -> ModelResponse:
        self._count(**{"shared" if is_shared else "hits": 1}, tokens=stored.tokens)
        data = {
            "model": call.model if isinstance(call.model, str) else name_of(call.model),
            "request": key,
            "age": round(max(time.time() - stored.stored_at, 0.0), 3),
            "shared": is_shared,
        }
        with custom_span(SPAN, data):
            return await self._give(call, stored.answer)

    async def _give(self, call: ModelCall, answer: ModelAnswer) -> ModelResponse:
        # Where the model would be called, so that events, streams, recordings and journals see the answer.
        call._stored = answer
        try:
            given: ModelResponse = await call._send(call)
        except BaseException:
            call._stored = None
            raise
        return given

    def _count(self, **more: int) -> None:
        with self._lock:
            changes = {name: getattr(self._stats, name) + number for name, number in more.items()}
            self._stats = attrs.evolve(self._stats, **changes)

    def _warn(self, message: str) -> None:
        if message not in self._warned and len(self._warned) < _MOST_WARNINGS:
            self._warned.add(message)
            _log.warning(message, store=repr(self.store))

    def __repr__(self) -> str:
        stats = self._stats
        return (
            f"Cache({self.store!r}, ttl={self.ttl:g}, per={self._key!r}, hits={stats.hits}, "
            f"misses={stats.misses})"
        )


_MOST_WARNINGS = 20


def _store(given: Any) -> CacheStore:
    if given is None:
        return MemoryStore()
    if isinstance(given, (str, os.PathLike)):
        return SQLiteStore(given)
    if isinstance(given, CacheStore) and not isinstance(given, type):
        return given
    reason = f"must be the path of an SQLite file, a CacheStore or None, not {shown(given)}"
    raise InvalidOptionError(option="store", reason=reason)


def _kept_elsewhere(call: ModelCall, model: Model, request: Request) -> bool | None:
    """Whether a recording or a journal has a cached answer; None without either."""
    run = call.run
    if run._tape is not None:
        return bool(run._tape.has_cached(call, model, request))
    kept: bool | None = None if run._journal is None else run._journal.has_cached(call, request)
    return kept


def _redacts_inside(run: Run, cache: Cache) -> bool:
    owners = [getattr(layer, "__self__", None) for layer in run.model_calls]
    inside = owners[owners.index(cache) + 1 :] if cache in owners else owners
    return any(isinstance(owner, Redact) for owner in inside)
