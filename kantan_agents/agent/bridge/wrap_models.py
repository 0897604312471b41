"""Wraps the models of agents and RunConfigs; ``StructuredModel`` is always outside."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from agents import Model, ModelProvider, RunConfig

from kantan_agents.agent.bridge.observed_model import ObservedModel
from kantan_agents.agent.bridge.structured_model import StructuredModel
from kantan_agents.models.model_wrapper import of_inner
from kantan_agents.models.resolve import own_client_of


@lru_cache(maxsize=256)
def _kind_of(model: type) -> type[Model] | None:
    """Return the wrapper class of a model class.

    Cached: abstract instance checks are slow.
    """
    return next((kind for kind in (StructuredModel, ObservedModel, Model) if issubclass(model, kind)), None)


def observed(model: Any, agent: Any) -> Any:
    """Wrap a model for an observed run; other values unchanged."""
    kind = _kind_of(model.__class__)
    if kind is Model:
        return ObservedModel.for_model(model, agent)
    if kind is StructuredModel:
        return StructuredModel.for_model(observed(model.inner, agent))
    return model


def unobserved(model: Any) -> Any:
    """Undo ``observed``."""
    if isinstance(model, StructuredModel):
        return StructuredModel.for_model(unobserved(model.inner))
    return model.inner if isinstance(model, ObservedModel) else model


def structured(model: Any) -> Any:
    """Wrap a model for structured answers; other values unchanged."""
    kind = _kind_of(model.__class__)
    return model if kind is None or kind is StructuredModel else StructuredModel.for_model(model)


class WrappingProvider(ModelProvider):
    """Applies each of ``wrap`` in order to another provider's models."""

    agent_registration = of_inner("agent_registration")
    _agent_registration = of_inner("_agent_registration")
    openai_provider = of_inner("openai_provider")

    def __init__(self, inner: ModelProvider, *wrap: Callable[[Any], Any]) -> None:
        self.inner = inner
        self._wrap = wrap

    def wrapping(self, wrap: Callable[[Any], Any]) -> WrappingProvider:
        """Return a provider that also calls ``wrap``, last."""
        return WrappingProvider(self.inner, *self._wrap, wrap)

    def get_model(self, model_name: str | None) -> Model:
        """Return the wrapped model of this name."""
        model = self.inner.get_model(model_name)
        own_client_of(model)
        for wrap in self._wrap:
            model = wrap(model)
        return model

    async def aclose(self) -> None:
        """Release the provider's resources."""
        await self.inner.aclose()

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "inner":  # not set yet while an instance is copied
            raise AttributeError(attribute)
        return getattr(self.inner, attribute)


def observe_models(config: RunConfig, agent: Any) -> None:
    """Wrap a RunConfig's models for an observed run of ``agent``."""
    config.model = observed(config.model, agent)
    provider: Any = config.model_provider
    wrap = partial(observed, agent=agent)
    is_ours = type(provider) is WrappingProvider
    config.model_provider = provider.wrapping(wrap) if is_ours else WrappingProvider(provider, wrap)
