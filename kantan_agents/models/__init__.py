"""Models: which client answers for which name."""

from kantan_agents.models.named import DefaultProvider
from kantan_agents.models.resolve import ResolvedModel, resolve_model

__all__ = ["DefaultProvider", "ResolvedModel", "resolve_model"]
