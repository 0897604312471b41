"""HTTP clients per API and event loop, and their models."""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
from collections.abc import Hashable
from functools import partial, wraps
from importlib import import_module
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary, ref

from agents import Model, OpenAIProvider
from cachetools import Cache, LRUCache
from kantan_llm import AsyncClientBundle
from kantan_llm.resolver import ResolvedLLM
from openai import AsyncOpenAI, DefaultAsyncHttpxClient, OpenAIError

from kantan_agents.errors import ClientLoopError
from kantan_agents.models.answer_headers import report_answer_headers
from kantan_agents.models.client_retries import report_client_retries
from kantan_agents.models.connections import PerLoop
from kantan_agents.models.http_pools import (
    close_idle_connections,
    reclaim_connections,
    transports_of_one_loop,
)
from kantan_agents.models.origin import register_origin
from kantan_agents.models.own_classes import adopt
from kantan_agents.models.stream_usage import AskingChatModel
from kantan_agents.models.tls import tls_settings, trusted_certificates
from kantan_agents.models.whole_streams import check_streams

OPENAI = "openai"
_PREFIXES = ("OPENAI_",)
# Maximum nesting of wrapped models.
_WRAPPED = 3
_PROXIES = ("_PROXY", "_proxy")
_FAILS_ACROSS_LOOPS = "__kantan_checked__"
_REQUESTS = "kantan_agents.models.light_requests"

unimported: list[str] = []


def expect_requests() -> None:
    """Make the next run import the request code."""
    if _REQUESTS not in sys.modules:
        unimported[:] = [_REQUESTS]


async def import_for_requests() -> None:
    """Import the request code in a thread."""
    try:
        await asyncio.to_thread(import_module, _REQUESTS)
    except RuntimeError:  # at interpreter exit, no thread can start
        import_module(_REQUESTS)
    unimported.clear()


def sdk_model(bundle: AsyncClientBundle) -> Model:
    """Return the SDK's model for a kantan-llm client."""
    # Late: it loads 500 modules. A run has imported it in a thread.
    from kantan_agents.models.light_requests import use_light_requests

    use_responses = None if bundle.provider == OPENAI else False
    provider = OpenAIProvider(openai_client=bundle.client, use_responses=use_responses)
    model = provider.get_model(bundle.model)
    AskingChatModel.adopt(model)
    own_connections(model)
    use_light_requests(bundle.client, model)
    register_origin(model, bundle.provider)
    return model


def own_connections(model: object) -> None:
    """Make an SDK model's client usable on every event loop and after canceled requests.

    OpenAI models become this library's, even wrapped ones.
    """
    adopt(model)
    client = getattr(model, "_client", None)  # not by type: test doubles have the attribute too
    if isinstance(client, AsyncOpenAI):
        _own_client(client)
    else:
        _own_wrapped(model)


def _own_client(client: AsyncOpenAI) -> None:
    http_client = getattr(client, "_client", None)  # a mock with the class as its `spec` lacks it
    if http_client is not None:
        url = str(client.base_url)
        reclaim_connections(http_client, url)
        report_answer_headers(http_client)
        check_streams(http_client)
        report_client_retries(client)
        _fail_across_loops(http_client, url)


def _own_wrapped(model: object, depth: int = _WRAPPED) -> None:
    # Not by `getattr`: a `NamedModel` would look for its model.
    for value in tuple(getattr(model, "__dict__", {}).values()):
        if isinstance(value, AsyncOpenAI):
            _own_client(value)
        elif isinstance(value, Model) and depth:
            adopt(value)
            _own_wrapped(value, depth - 1)


class ApiClients:
    """The clients of one API and key, one per event loop.

    They close when nothing uses them.
    """

    def __init__(self, resolved: ResolvedLLM) -> None:
        # openai 2 is built on httpx, openai 3 on httpx2.
        tls = tls_settings(DefaultAsyncHttpxClient.__base__.__module__.partition(".")[0])
        # Like kantan-llm's `get_async_llm_client`, but with shared TLS settings.
        first = AsyncOpenAI(
            api_key=resolved.api_key,
            base_url=resolved.base_url,
            timeout=None,
            http_client=DefaultAsyncHttpxClient(verify=tls, timeout=None),
        )
        self._clients = PerLoop(partial(_next_client, first, [first], tls), AsyncOpenAI.close)

    def get(self) -> AsyncOpenAI:
        """Return the client for the running loop."""
        return self._clients.get()

    def close_idle(self) -> None:
        """Close all idle connections."""
        self._clients.on_each_loop(_close_idle)


async def _close_idle(client: AsyncOpenAI) -> None:
    await close_idle_connections(client._client)


def _next_client(first: AsyncOpenAI, unused: list[AsyncOpenAI], tls: ssl.SSLContext) -> AsyncOpenAI:
    try:
        return unused.pop()  # atomic: only one of two threads gets the first client
    except IndexError:
        return first.copy(http_client=DefaultAsyncHttpxClient(verify=tls, timeout=None))


_shared: WeakValueDictionary[object, ApiClients] = WeakValueDictionary()
_shared_lock = Lock()


def shared_clients(resolved: ResolvedLLM) -> ApiClients:
    """Return an API's clients."""
    key = (resolved.base_url, resolved.api_key, settings_in_environment())
    with _shared_lock:
        clients = _shared.get(key)
    if clients is None:
        created = ApiClients(resolved)
        with _shared_lock:
            clients = _shared.setdefault(key, created)
    return clients


def settings_in_environment() -> tuple[tuple[Any, ...], ...]:
    """Return variables that the OpenAI client reads."""
    names = [name for name in os.environ if name.startswith(_PREFIXES) or name.endswith(_PROXIES)]
    return (*((name, os.environ.get(name, "")) for name in sorted(names)), trusted_certificates())


class ClientPool:
    """Holds one model for each event loop."""

    def __init__(self, resolved: ResolvedLLM, clients: ApiClients) -> None:
        self.clients = clients
        self._models = PerLoop(partial(_new_model, resolved, clients))

    def model(self) -> Model:
        """Return the SDK model for the running loop."""
        return self._models.get()

    def client(self) -> AsyncOpenAI:
        """Return the running loop's client; hold the pool meanwhile."""
        self.model()
        return self.clients.get()


class RecentPools(LRUCache[Hashable, ClientPool]):
    """The pools used last. Evicting an API's last pool closes its idle connections.

    An agent may still use its clients.
    """

    def popitem(self) -> tuple[Hashable, ClientPool]:
        """Evict the least recently used pool."""
        key, pool = super().popitem()
        # Not by `values()`: reading a pool counts as using it.
        if all(Cache.__getitem__(self, kept).clients is not pool.clients for kept in self):
            pool.clients.close_idle()
        return key, pool


def _new_model(resolved: ResolvedLLM, clients: ApiClients) -> Model:
    client = clients.get()
    return sdk_model(AsyncClientBundle(client, resolved.model, resolved.provider, str(client.base_url)))


class _NotRepeatedError(ClientLoopError, OpenAIError):
    """OpenAI's client repeats a request after any other error."""


_NotRepeatedError.__name__ = _NotRepeatedError.__qualname__ = ClientLoopError.__name__


def _fail_across_loops(http_client: Any, base_url: str) -> None:
    """Raise E46 where a transport of one event loop fails on another; once per client.

    `PoolPerLoop` separates the loops. A transport without such a pool may reuse a closed loop's connection.
    """
    send = getattr(http_client, "send", None)
    others = transports_of_one_loop(http_client)
    if not others or send is None or hasattr(send, _FAILS_ACROSS_LOOPS):
        return
    used: dict[str, ref[asyncio.AbstractEventLoop]] = {}

    @wraps(send)
    async def checked(request: Any, **options: Any) -> Any:
        loop = asyncio.get_running_loop()
        first = used.setdefault("first", ref(loop))
        try:
            return await send(request, **options)
        except RuntimeError as error:
            if first() is loop:
                raise
            kind = type(others[0])
            raise _NotRepeatedError(
                base_url=base_url,
                transport=f"{kind.__module__}.{kind.__qualname__}",
                reason=f"{type(error).__name__}: {error}",
            ) from error

    setattr(checked, _FAILS_ACROSS_LOOPS, True)
    http_client.send = checked
