"""Resolves ``model`` options to SDK models, with kantan-llm."""

from __future__ import annotations

import os
from collections.abc import Hashable
from threading import Lock

import anyio.to_thread
import attrs
from agents import Model, ModelSettings
from agents.models import get_default_model_settings
from cachetools import LRUCache
from kantan_llm import AsyncClientBundle, KantanAsyncLLM, KantanLLMError
from kantan_llm.errors import MissingConfigError
from kantan_llm.providers import split_model_prefix
from kantan_llm.resolver import resolve_llm

from kantan_agents.errors import InvalidOptionError, ModelNotConfiguredError, ModelNotFoundError
from kantan_agents.models.client_pool import (
    ClientPool,
    RecentPools,
    expect_requests,
    own_connections,
    sdk_model,
    settings_in_environment,
    shared_clients,
)
from kantan_agents.models.configuration import (
    ANTHROPIC,
    check_key,
    check_resolved,
    check_url,
    missing,
    not_configured,
)
from kantan_agents.models.name_hints import hint_for
from kantan_agents.models.named_model import (
    AnthropicModels,
    DefaultProvider,
    FactoryClients,
    LaterClients,
    ModelFinder,
    NamedModel,
    ProviderFactory,
)
from kantan_agents.models.openai_defaults import (
    ELSEWHERE,
    DefaultClientModel,
    OpenAIPool,
    at_openai,
    default_client_model,
    default_key,
    uses_responses,
)
from kantan_agents.models.protocol import AnthropicProvider, ProviderModel, is_provider

_pools = RecentPools(maxsize=128)
_anthropic: LRUCache[Hashable, AnthropicModels] = LRUCache(maxsize=128)
_pools_lock = Lock()


def pool_for(name: str) -> tuple[str, ClientPool]:
    """Return a model's name at its provider, and its clients.

    E47 if its provider's key or URL is missing or unusable, E19 if kantan-llm does not know it.
    """
    bare = at_openai(name)
    try:
        if bare is None:
            resolved = resolve_llm(name, provider=None, providers=None, api_key=None, base_url=None)
        else:
            key = default_key()
            resolved = resolve_llm(
                f"openai/{bare}", provider=None, providers=None, api_key=key, base_url=None
            )
    except MissingConfigError as error:
        raise (missing(name, ANTHROPIC) if _claude_in(name) else not_configured(name, error)) from error
    except (KantanLLMError, TypeError, ValueError, AttributeError) as error:
        raise _not_found(name) from error
    check_resolved(name, resolved)
    try:
        key_of_pool = (resolved, settings_in_environment(), bare is not None and uses_responses())
        with _pools_lock:
            pool = _pools.get(key_of_pool)
        if pool is None:
            clients = shared_clients(resolved)
            created = (
                ClientPool(resolved, clients)
                if bare is None
                else OpenAIPool(resolved, clients, lambda: pool_for(name)[1])
            )
            with _pools_lock:
                pool = _pools.setdefault(key_of_pool, created)
    except (KantanLLMError, TypeError, ValueError) as error:
        raise ModelNotFoundError(model=name) from error
    return resolved.model, pool


def _not_found(name: str) -> ModelNotFoundError:
    error = ModelNotFoundError(model=name)
    if isinstance(name, str):
        error.__notes__ = [hint_for(name)]
    return error


def anthropic_for(name: str) -> tuple[str, AnthropicModels] | None:
    """Return a Claude model's name and clients if ``ANTHROPIC_API_KEY`` is the key; else E47.

    ``CLAUDE_API_KEY`` takes precedence, for chat completions.
    """
    claude = _claude_in(name)
    key = os.environ.get(ANTHROPIC.key)
    if claude is None or not key or os.environ.get("CLAUDE_API_KEY"):
        return None
    check_key(name, ANTHROPIC.key, key)
    url = os.environ.get("ANTHROPIC_BASE_URL") or None
    if url is not None:
        check_url(name, "ANTHROPIC_BASE_URL", url)
    settings = settings_in_environment()
    with _pools_lock:
        found = _anthropic.get((claude, key, url, settings))
        if found is None:
            provider = AnthropicProvider(claude, api_key=key, base_url=url)
            found = _anthropic[claude, key, url, settings] = AnthropicModels(ProviderModel(provider))
    return claude, found


def clients_for(name: str) -> tuple[str, ModelFinder]:
    """Return a model's name and clients; errors as for ``pool_for``."""
    return anthropic_for(name) or openai_clients_for(name)


def openai_clients_for(name: str) -> tuple[str, ClientPool | DefaultClientModel]:
    """Return a model's name and OpenAI clients; errors as for ``pool_for``."""
    expect_requests()
    try:
        return pool_for(name)
    except ModelNotFoundError as error:
        default = default_client_model(name, is_known=isinstance(error, ModelNotConfiguredError))
        if default is None:
            raise
        return default


def _claude_in(name: str) -> str | None:
    provider, model = split_model_prefix(name.strip())
    is_claude = provider == "anthropic" or (provider is None and model.lower().startswith("claude-"))
    return model if is_claude else None


async def embedding_clients(name: str) -> tuple[ClientPool | DefaultClientModel, str]:
    """Return an embedding model's clients and name; errors as for ``pool_for``.

    ``text-embedding-`` without a prefix means OpenAI.
    """
    # Creating the first client reads certificates, which is slow.
    model, pool = await anyio.to_thread.run_sync(openai_clients_for, name)
    return pool, model


def own_client_of(model: object) -> None:
    """Prepare an application's SDK model for every event loop."""
    if isinstance(model, Model) and not isinstance(model, NamedModel):  # it would look for its client
        own_connections(model)


@attrs.frozen
class ResolvedModel:
    """The SDK agent's model and default settings."""

    model: Model | None
    settings: ModelSettings | None = None


def resolve_model(model: object, provider_factory: ProviderFactory | None = None) -> ResolvedModel:
    """Resolve the ``model`` option of an Agent; E19 if unknown, E75 for another type.

    A missing key or URL fails only at the first call, so that modules with agents can be imported.
    ``provider_factory`` creates a custom SDK model provider.
    """
    if provider_factory is not None and (model is None or isinstance(model, str)):
        named = NamedModel(model, FactoryClients(provider_factory, model))
        return ResolvedModel(named, get_default_model_settings(model))
    if model is None or isinstance(model, Model):
        own_client_of(model)
        return ResolvedModel(model)
    if isinstance(model, str):
        clients: ModelFinder
        if model.startswith(ELSEWHERE):
            return ResolvedModel(NamedModel(model, FactoryClients(DefaultProvider, model)))
        try:
            name, clients = clients_for(model)
        except ModelNotConfiguredError:
            name, clients = split_model_prefix(model.strip())[1], LaterClients(model, clients_for)
        return ResolvedModel(NamedModel(name, clients), get_default_model_settings(name))
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
