"""Connection pools that survive canceled requests, and their statistics."""

from __future__ import annotations

from collections.abc import Coroutine
from functools import cache
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import attrs

from kantan_agents.models.connections import finish_closing, shield_closing
from kantan_agents.models.loop_pools import PoolPerLoop
from kantan_agents.support.log import get_logger

_log = get_logger("kantan_agents.connections")


class _Reclaiming(PoolPerLoop):
    """Mixin for a pool: a connection without a request is idle or leaves the pool.

    When a request is canceled between two steps, the HTTP library forgets it but not its connection, which
    would block the pool forever. The only hook is two private methods, which ``reclaim_connections`` checks.
    """

    counted_as: str | None = None

    def _assign_requests_to_connections(self) -> list[Any]:
        used = {request.connection for request in self._requests}
        unused = [connection for connection in self._connections if connection not in used]
        lost = [connection for connection in unused if not (connection.is_idle() or connection.is_closed())]
        for connection in lost:
            self._connections.remove(connection)
            _log.debug("connection_reclaimed", connection=connection.info())
        closing: list[Any] = super()._assign_requests_to_connections()  # type: ignore[misc]
        return [*lost, *closing]

    async def close_idle(self) -> None:
        used = {request.connection for request in self._requests}
        idle = [
            connection for connection in self._connections if connection.is_idle() and connection not in used
        ]
        for connection in idle:
            self._connections.remove(connection)
        await self._close_connections(idle)

    def on_copy(self, copied: Any) -> None:
        if self.counted_as is not None:
            copied.counted_as = self.counted_as
            with _pools_lock:
                _pools[copied] = self.counted_as

    async def aclose(self) -> None:
        with _pools_lock:
            _pools.pop(self, None)
        await super().aclose()

    def forget_connections(self) -> None:
        """Drop a closed loop's connections, and stop counting."""
        with _pools_lock:
            _pools.pop(self, None)
        super().forget_connections()

    def _close_connections(self, closing: list[Any]) -> Coroutine[Any, Any, None]:
        close: Coroutine[Any, Any, None] = super()._close_connections(closing)  # type: ignore[misc]
        # The HTTP library does not shield it from asyncio's cancellation.
        return finish_closing(close) if closing else close


class _ClosingBackend:
    """Mixin for a network backend: sockets close if the TLS handshake is canceled.

    The HTTP library closes them only on failure.
    """

    async def connect_tcp(self, *args: Any, **options: Any) -> Any:
        stream = await super().connect_tcp(*args, **options)  # type: ignore[misc]
        _mix(_ClosingStream, stream)
        return stream


class _ClosingStream:
    async def start_tls(self, *args: Any, **options: Any) -> Any:
        try:
            return await super().start_tls(*args, **options)  # type: ignore[misc]
        except BaseException:
            await finish_closing(self.aclose())  # type: ignore[attr-defined]
            raise


# Maximum nesting of transports.
_NESTED = 3

_NEEDED = (
    "_assign_requests_to_connections",
    "_close_connections",
    "_connections",
    "_network_backend",
    "_requests",
)


def _mix(mixin: type, target: Any) -> bool:
    try:
        kind: Any = type(target)
        target.__class__ = _mixed(mixin, kind)
    except TypeError:  # it has slots
        return False
    return True


@cache
def _mixed(mixin: type, kind: Any) -> type:
    return kind if issubclass(kind, mixin) else type(kind.__name__, (mixin, kind), {})


def reclaim_connections(client: Any, base_url: str) -> None:
    """Recover connections of an ``AsyncClient``, and count them per ``base_url``.

    Clients without event hooks and transports without a pool stay unchanged.
    """
    hooks = getattr(client, "event_hooks", None)
    if not isinstance(hooks, dict) or shield_closing in hooks.setdefault("response", []):
        return
    hooks["response"].append(shield_closing)
    for pool in _pools_of(client):
        if isinstance(pool, _Reclaiming):
            continue
        if all(hasattr(pool, name) for name in _NEEDED) and _mix(_Reclaiming, pool):
            _mix(_ClosingBackend, pool._network_backend)
            pool.split_by_loop()
        else:
            _log.warning("connections_not_reclaimed", pool=f"{type(pool).__module__}.{type(pool).__name__}")
    if hasattr(client, "_transport_for_url"):  # a proxy has its own pool
        used = client._transport_for_url(client.build_request("GET", base_url).url)
        for pool in _pools_in(used):
            _count(pool, base_url)


async def close_idle_connections(client: Any) -> None:
    """Close a client's idle connections."""
    for pool in _pools_of(client):
        if isinstance(pool, _Reclaiming):
            await pool.close_idle()


def transports_of_one_loop(client: Any) -> list[Any]:
    """Return transports whose pool ``reclaim_connections`` could not change."""
    return [
        transport
        for transport in _transports_of(client)
        if not any(isinstance(pool, _Reclaiming) for pool in _pools_in(transport))
    ]


def _pools_of(client: Any) -> list[Any]:
    return [pool for transport in _transports_of(client) for pool in _pools_in(transport)]


def _transports_of(client: Any) -> list[Any]:
    found = (getattr(client, "_transport", None), *getattr(client, "_mounts", {}).values())
    return [transport for transport in found if transport is not None]


def _pools_in(transport: Any, depth: int = _NESTED) -> list[Any]:
    values = getattr(transport, "__dict__", {})
    if (pool := values.get("_pool")) is not None:
        return [pool]
    inner = [value for value in values.values() if hasattr(type(value), "handle_async_request")]
    return [pool for value in inner if depth for pool in _pools_in(value, depth - 1)]


@attrs.frozen
class ConnectionStats:
    """The HTTP connections to one API, over all pools of this process.

    Each client has one pool per event loop. A connection is ``active``, ``idle`` or ``opening``.

    Attributes:
        base_url: URL of the API, without user and password.
        active: Connections with a request.
        idle: Open connections without a request.
        opening: Connections that are being opened.
        pending_requests: Requests that wait for a connection.
        max_connections: The limit of all pools together.
        pools: Number of pools.
    """

    base_url: str
    active: int = 0
    idle: int = 0
    opening: int = 0
    pending_requests: int = 0
    max_connections: int = 0
    pools: int = 0


_pools: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
_pools_lock = Lock()


def connection_stats() -> list[ConnectionStats]:
    """Return the numbers of HTTP connections of this process, one entry for each URL of an API.

    Export them as gauges. In a full pool (``active + opening`` equals ``max_connections``), further requests
    wait (``pending_requests``). The numbers include the clients for model names, ``AnthropicProvider`` and
    ``GeminiProvider``, and clients passed to an agent in an ``AsyncClientBundle`` or ``KantanAsyncLLM``. Any
    thread may call it.
    """
    with _pools_lock:
        pools = list(_pools.items())
    found: dict[str, ConnectionStats] = {}
    for pool, url in pools:
        if pool.is_over:
            continue
        found[url] = _add(found.get(url) or ConnectionStats(url), pool)
    return sorted(found.values(), key=lambda stats: stats.base_url)


def _add(stats: ConnectionStats, pool: Any) -> ConnectionStats:
    # `list` is atomic: another thread may change the lists.
    states = [_state(connection) for connection in list(pool._connections)]
    return ConnectionStats(
        stats.base_url,
        active=stats.active + states.count("active"),
        idle=stats.idle + states.count("idle"),
        opening=stats.opening + states.count("opening"),
        pending_requests=stats.pending_requests + sum(r.is_queued() for r in list(pool._requests)),
        max_connections=stats.max_connections + pool._max_connections,
        pools=stats.pools + 1,
    )


def _state(connection: Any) -> str:
    if connection.is_closed():
        return "closed"
    if connection.is_idle():
        return "idle"
    return "opening" if connection.info() == "CONNECTING" else "active"


def _count(pool: Any, base_url: str) -> None:
    if isinstance(pool, _Reclaiming):
        scheme, separator, rest = base_url.partition("://")
        host, slash, path = rest.partition("/")
        with _pools_lock:
            pool.counted_as = f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}".rstrip("/")
            _pools[pool] = pool.counted_as
