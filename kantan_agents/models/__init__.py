"""Models: which client answers for which name."""

from kantan_agents.models.resolve import ResolvedModel, RunModels, resolve_model

__all__ = ["ResolvedModel", "RunModels", "resolve_model"]
