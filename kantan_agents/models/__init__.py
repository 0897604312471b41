"""Models: which client answers for which name."""

from kantan_agents.models.named import DefaultProvider, ProviderFactory, keep_provider
from kantan_agents.models.resolve import ResolvedModel, resolve_model

__all__ = ["DefaultProvider", "ProviderFactory", "ResolvedModel", "keep_provider", "resolve_model"]
