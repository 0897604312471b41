"""Resolve the ``model`` option of an Agent to an SDK model and its HTTP client."""

from kantan_agents.models.named import DefaultProvider, ProviderFactory, check_configured, use_provider
from kantan_agents.models.origin import Origin, origin_of
from kantan_agents.models.resolve import ResolvedModel, embedding_client, resolve_model

__all__ = [
    "DefaultProvider",
    "Origin",
    "ProviderFactory",
    "ResolvedModel",
    "check_configured",
    "embedding_client",
    "origin_of",
    "resolve_model",
    "use_provider",
]
