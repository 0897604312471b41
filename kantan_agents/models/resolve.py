"""Resolve model names and other ``model`` options to SDK models, with kantan-llm."""

from __future__ import annotations

from threading import Lock

import anyio.to_thread
import attrs
from agents import Model, ModelSettings
from agents.models import get_default_model_settings
from cachetools import LRUCache
from kantan_llm import AsyncClientBundle, KantanAsyncLLM, KantanLLMError, get_async_llm_client
from kantan_llm.resolver import ResolvedLLM, resolve_llm
from openai import AsyncOpenAI

from kantan_agents.errors import InvalidOptionError, ModelNotFoundError
from kantan_agents.models.client_pool import ClientPool, sdk_model
from kantan_agents.models.named import FactoryClients, NamedModel, ProviderFactory
from kantan_agents.protocol import ProviderModel, is_provider

_pools: LRUCache[ResolvedLLM, ClientPool] = LRUCache(maxsize=128)
_pools_lock = Lock()


def pool_for(name: str) -> tuple[str, ClientPool]:
    """Return a model's name at its provider, and the clients for it.

    Raises:
        ModelNotFoundError: E19, kantan-llm does not know the model or its configuration is missing.
    """
    try:
        resolved = resolve_llm(name, provider=None, providers=None, api_key=None, base_url=None)
        with _pools_lock:
            pool = _pools.get(resolved)
        if pool is None:
            created = ClientPool(get_async_llm_client(name))
            with _pools_lock:
                pool = _pools.setdefault(resolved, created)
    except (KantanLLMError, TypeError, ValueError) as error:
        raise ModelNotFoundError(model=name) from error
    return resolved.model, pool


async def embedding_client(name: str) -> tuple[AsyncOpenAI, str]:
    """Return the running loop's client for an embedding model, and the model's name at its provider.

    A name that begins with ``text-embedding-`` and has no provider prefix is an OpenAI model.

    Raises:
        ModelNotFoundError: E19, kantan-llm does not know the model or its configuration is missing.
    """
    full_name = f"openai/{name}" if name.startswith("text-embedding-") else name
    # In a thread: creating the first client reads certificates, which takes a while.
    model, pool = await anyio.to_thread.run_sync(pool_for, full_name)
    return pool.client(), model


@attrs.frozen
class ResolvedModel:
    """The result of resolving a ``model`` option.

    Args:
        model: The model of the SDK agent; None for the SDK's default model.
        settings: The SDK's default settings for the model, if the SDK cannot find them by itself.
    """

    model: Model | None
    settings: ModelSettings | None = None


def resolve_model(model: object, provider_factory: ProviderFactory | None = None) -> ResolvedModel:
    """Resolve the ``model`` option of an Agent.

    Args:
        model: A name, kantan-llm's ``AsyncClientBundle`` or ``KantanAsyncLLM``, an SDK ``Model``, a
            ``Provider`` of the protocol, or None for the default model.
        provider_factory: Creates a custom SDK model provider, which then resolves names.

    Raises:
        ModelNotFoundError: E19, kantan-llm does not know the model or its configuration is missing.
        InvalidOptionError: E75, ``model`` is of another type.
    """
    if provider_factory is not None and (model is None or isinstance(model, str)):
        named = NamedModel(model, FactoryClients(provider_factory, model))
        return ResolvedModel(named, get_default_model_settings(model))
    if model is None or isinstance(model, Model):
        return ResolvedModel(model)
    if isinstance(model, str):
        name, pool = pool_for(model)
        return ResolvedModel(NamedModel(name, pool), get_default_model_settings(name))
    if isinstance(model, KantanAsyncLLM):
        base_url = str(model.client.base_url)
        model = AsyncClientBundle(model.client, model.model, model.provider, base_url)
    if isinstance(model, AsyncClientBundle):
        return ResolvedModel(sdk_model(model), get_default_model_settings(model.model))
    if is_provider(model):
        return ResolvedModel(ProviderModel(model))
    raise InvalidOptionError(
        option="model",
        reason="must be a name, an AsyncClientBundle, a KantanAsyncLLM, an SDK Model, a Provider or None, "
        f"not {type(model).__name__}",
    )
