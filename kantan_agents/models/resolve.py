"""From a model as users write it to the SDK's models, through kantan-llm (spec F-02, design 5)."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import MutableMapping
from functools import cache
from importlib import import_module
from threading import Lock
from typing import cast
from weakref import WeakKeyDictionary, ref

import attrs
from agents import Model, ModelProvider, ModelSettings, MultiProvider, OpenAIProvider
from agents.models import get_default_model_settings
from cachetools import LRUCache
from kantan_llm import AsyncClientBundle, KantanAsyncLLM, KantanLLMError, get_async_llm_client
from kantan_llm.resolver import ResolvedLLM, resolve_llm
from openai import DefaultAsyncHttpxClient

from kantan_agents.errors import InvalidOptionError, ModelNotFoundError

OPENAI = "openai"


def sdk_model(bundle: AsyncClientBundle) -> Model:
    """Return the SDK's model for a client of kantan-llm.

    For OpenAI the SDK chooses between Responses and Chat Completions; every other provider speaks
    chat completions.
    """
    use_responses = None if bundle.provider == OPENAI else False
    provider = OpenAIProvider(openai_client=bundle.client, use_responses=use_responses)
    return provider.get_model(bundle.model)


class ModelName(str):
    """A model name that kantan-llm has resolved; what an SDK agent of ours carries as its model.

    The SDK hands it to the run's model provider, which finds the client behind it; names of other SDK
    agents in the same run go the SDK's own way.
    """

    __slots__ = ("clients",)

    clients: ClientPool

    @classmethod
    def of(cls, name: str, clients: ClientPool) -> ModelName:
        """Attach the clients to the name."""
        attached = cls(name)
        attached.clients = clients
        return attached


class ClientPool:
    """The clients for one resolved model: one per event loop, because connections belong to a loop."""

    def __init__(self, bundle: AsyncClientBundle) -> None:
        self._bundle = bundle
        self._first_loop: ref[asyncio.AbstractEventLoop] | None = None
        self._models: MutableMapping[asyncio.AbstractEventLoop, Model] = WeakKeyDictionary()
        self._lock = Lock()

    def model(self) -> Model:
        """Return the SDK model for the running loop."""
        loop = asyncio.get_running_loop()
        model = self._models.get(loop)
        if model is None:
            with self._lock:
                self._drop_closed_loops()
                model = self._models[loop] = sdk_model(self._bundle_for(loop))
        return model

    def _drop_closed_loops(self) -> None:
        # An idle connection refers to its loop, so no weak reference alone lets go of either: a program
        # that begins many loops one after another would run out of sockets.
        for loop in [loop for loop in self._models if loop.is_closed()]:
            del self._models[loop]

    def _bundle_for(self, loop: asyncio.AbstractEventLoop) -> AsyncClientBundle:
        if self._first_loop is None:
            self._first_loop = ref(loop)
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


_pools: LRUCache[ResolvedLLM, ClientPool] = LRUCache(maxsize=128)
_pools_lock = Lock()


def _pool_for(name: str) -> tuple[str, ClientPool]:
    try:
        resolved = resolve_llm(name, provider=None, providers=None, api_key=None, base_url=None)
        with _pools_lock:
            pool = _pools.get(resolved)
        if pool is None:
            made = ClientPool(get_async_llm_client(name))
            with _pools_lock:
                pool = _pools.setdefault(resolved, made)
    except (KantanLLMError, TypeError, ValueError) as error:
        raise ModelNotFoundError(model=name) from error
    return resolved.model, pool


class RunModels(ModelProvider):
    """The model provider of one run: our names to their clients, all others to the SDK's own.

    Args:
        fallback: The provider for names that are not ours; the SDK's ``MultiProvider`` by default,
            made anew in every run so that ``set_default_openai_client`` and the environment are read
            as they are then.
    """

    def __init__(self, fallback: ModelProvider | None = None) -> None:
        self._fallback = fallback

    def get_model(self, model_name: str | None) -> Model:
        """Return the model behind ``model_name``."""
        if isinstance(model_name, ModelName):
            return model_name.clients.model()
        if self._fallback is None:
            self._fallback = MultiProvider()
        return self._fallback.get_model(model_name)

    async def aclose(self) -> None:
        """Close what the fallback holds; clients of kantan-llm live longer than a run."""
        if self._fallback is not None:
            await self._fallback.aclose()


@attrs.frozen
class ResolvedModel:
    """What a model option comes to.

    Args:
        model: What the SDK agent carries as its model.
        settings: The SDK's defaults for that model, where it cannot find them by itself.
    """

    model: str | Model | None
    settings: ModelSettings | None = None


def resolve_model(model: object, *, own_provider: bool) -> ResolvedModel:
    """Resolve the ``model`` option of an Agent.

    Args:
        model: A name, kantan-llm's ``AsyncClientBundle`` or ``KantanAsyncLLM``, an SDK ``Model``, or
            None for the SDK's default model.
        own_provider: Whether the user supplies the model provider; names are then left to it.

    Raises:
        ModelNotFoundError: E19, kantan-llm knows no such model or lacks its configuration.
        InvalidOptionError: E75, ``model`` is none of these.
    """
    if model is None or isinstance(model, Model):
        return ResolvedModel(model)
    if isinstance(model, str):
        if own_provider:
            return ResolvedModel(model)
        name, pool = _pool_for(model)
        return ResolvedModel(ModelName.of(name, pool))
    if isinstance(model, KantanAsyncLLM):
        base_url = str(model.client.base_url)
        model = AsyncClientBundle(model.client, model.model, model.provider, base_url)
    if isinstance(model, AsyncClientBundle):
        return ResolvedModel(sdk_model(model), get_default_model_settings(model.model))
    raise InvalidOptionError(
        option="model",
        reason="must be a name, an AsyncClientBundle, a KantanAsyncLLM, an SDK Model or None, "
        f"not {type(model).__name__}",
    )
