"""Models: which client answers for which name."""

from kantan_agents.models.embedding import embedding_client
from kantan_agents.models.named import DefaultProvider, ProviderFactory, keep_provider
from kantan_agents.models.origin import Origin, origin_of
from kantan_agents.models.resolve import ResolvedModel, resolve_model

__all__ = [
    "DefaultProvider",
    "Origin",
    "ProviderFactory",
    "ResolvedModel",
    "embedding_client",
    "keep_provider",
    "origin_of",
    "resolve_model",
]
