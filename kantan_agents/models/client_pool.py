"""The clients behind one resolved model name: one per event loop."""

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

from kantan_agents.models.closing import close_to_the_end
from kantan_agents.models.origin import register_origin

OPENAI = "openai"


def sdk_model(bundle: AsyncClientBundle) -> Model:
    """Return the SDK's model for a client of kantan-llm.

    For OpenAI the SDK chooses between Responses and Chat Completions; every other provider speaks
    chat completions.
    """
    # With it come five hundred modules of the client that it imports itself at its first request: a tenth of
    # the time that `import kantan_agents` would take.
    from kantan_agents.models.light_requests import lighten

    close_to_the_end(bundle.client)
    use_responses = None if bundle.provider == OPENAI else False
    provider = OpenAIProvider(openai_client=bundle.client, use_responses=use_responses)
    model = provider.get_model(bundle.model)
    lighten(bundle.client, model)
    register_origin(model, bundle.provider)
    return model


class ClientPool:
    """The clients for one resolved model: one per event loop, because connections belong to a loop."""

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
        """Return the client for the running loop, for what is asked without the SDK."""
        self.model()
        return self._clients[asyncio.get_running_loop()]

    def _drop_closed_loops(self) -> None:
        # An idle connection refers to its loop, so no weak reference alone lets go of either: a program
        # that begins many loops one after another would run out of sockets.
        for reference in self._models.keyrefs():
            loop = reference()
            if loop is not None and loop.is_closed():
                self._models.pop(loop, None)
                self._clients.pop(loop, None)

    def _bundle_for(self, loop: asyncio.AbstractEventLoop) -> AsyncClientBundle:
        # In one step, so that of two loops on two threads only one gets the first client.
        if self._owner.setdefault("loop", ref(loop))() is loop:
            return self._bundle
        http_client = DefaultAsyncHttpxClient(verify=_tls_settings())
        client = self._bundle.client.copy(http_client=http_client)
        return AsyncClientBundle(client, self._bundle.model, self._bundle.provider, self._bundle.base_url)


@cache
def _tls_settings() -> ssl.SSLContext:
    """Return the HTTP library's own TLS settings: 60 ms to make, and they belong to no loop."""
    # openai 2 is built on httpx, openai 3 on httpx2; both offer the same function.
    http_library = DefaultAsyncHttpxClient.__base__.__module__.partition(".")[0]
    context = import_module(http_library).create_ssl_context()
    return cast("ssl.SSLContext", context)
