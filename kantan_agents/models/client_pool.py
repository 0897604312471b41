"""``ClientPool``: the HTTP clients of one resolved model name, one per event loop."""

from __future__ import annotations

import asyncio
import ssl
from functools import cache
from importlib import import_module
from typing import cast
from weakref import WeakKeyDictionary, ref

from agents import Model, OpenAIProvider
from kantan_llm import AsyncClientBundle
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from kantan_agents.models.origin import register_origin
from kantan_agents.support.connections import shield_closing
from kantan_agents.support.http_pools import reclaim_connections

OPENAI = "openai"


def sdk_model(bundle: AsyncClientBundle) -> Model:
    """Return the SDK's model for a client of kantan-llm.

    For OpenAI, the SDK chooses between Responses and chat completions. All other providers use chat
    completions.
    """
    # Imported here: it needs five hundred modules of the client, which the client itself imports only for its
    # first request. They would add a tenth to the time of `import kantan_agents`.
    from kantan_agents.models.light_requests import use_light_requests

    _own_connections(bundle)
    use_responses = None if bundle.provider == OPENAI else False
    provider = OpenAIProvider(openai_client=bundle.client, use_responses=use_responses)
    model = provider.get_model(bundle.model)
    use_light_requests(bundle.client, model)
    register_origin(model, bundle.provider)
    return model


def _own_connections(bundle: AsyncClientBundle) -> None:
    """Make cancelled requests of a client give back their connections, whenever they are cancelled.

    A client without httpx event hooks is left unchanged.
    """
    http_client = getattr(bundle.client, "_client", None)
    hooks = getattr(http_client, "event_hooks", None)
    if isinstance(hooks, dict) and shield_closing not in hooks.setdefault("response", []):
        hooks["response"].append(shield_closing)
        reclaim_connections(http_client, str(bundle.client.base_url))


class ClientPool:
    """Holds one client per event loop for one resolved model, because connections belong to a loop."""

    def __init__(self, bundle: AsyncClientBundle) -> None:
        self._bundle = bundle
        self._owner: dict[str, ref[asyncio.AbstractEventLoop]] = {}
        self._models: WeakKeyDictionary[asyncio.AbstractEventLoop, Model] = WeakKeyDictionary()
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncOpenAI] = WeakKeyDictionary()

    def model(self) -> Model:
        """Return the SDK model for the running loop."""
        loop = asyncio.get_running_loop()
        model = self._models.get(loop)
        if model is None:
            self._drop_closed_loops()
            bundle = self._bundle_for(loop)
            self._clients[loop] = bundle.client
            model = self._models[loop] = sdk_model(bundle)
        return model

    def client(self) -> AsyncOpenAI:
        """Return the client for the running loop, for requests that do not go through the SDK."""
        self.model()
        return self._clients[asyncio.get_running_loop()]

    def _drop_closed_loops(self) -> None:
        # An idle connection refers to its loop, so a weak reference alone never releases them: a program
        # that runs many loops one after another would run out of sockets.
        for reference in self._models.keyrefs():
            loop = reference()
            if loop is not None and loop.is_closed():
                self._models.pop(loop, None)
                self._clients.pop(loop, None)

    def _bundle_for(self, loop: asyncio.AbstractEventLoop) -> AsyncClientBundle:
        # setdefault is atomic: of two loops in two threads, only one gets the first client.
        if self._owner.setdefault("loop", ref(loop))() is loop:
            return self._bundle
        http_client = DefaultAsyncHttpxClient(verify=_tls_settings())
        client = self._bundle.client.copy(http_client=http_client)
        return AsyncClientBundle(client, self._bundle.model, self._bundle.provider, self._bundle.base_url)


@cache
def _tls_settings() -> ssl.SSLContext:
    """Return the HTTP library's TLS settings, cached: creating them takes 60 ms, and loops can share them."""
    # openai 2 is built on httpx, openai 3 on httpx2; both offer the same function.
    http_library = DefaultAsyncHttpxClient.__base__.__module__.partition(".")[0]
    context = import_module(http_library).create_ssl_context()
    return cast("ssl.SSLContext", context)
