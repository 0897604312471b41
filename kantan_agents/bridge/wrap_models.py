"""Wraps and unwraps the models of agents and RunConfigs.

In a run with middleware or observers, a model gets an ``ObservedModel`` around it. The model of an agent
with an output type gets a ``StructuredModel``, which is always the outer wrapper.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from agents import Model, ModelProvider, RunConfig

from kantan_agents.bridge.observed_model import ObservedModel
from kantan_agents.bridge.structured_model import StructuredModel
from kantan_agents.models import own_client_of


def observed(model: Any, agent: str) -> Any:
    """Wrap a model for a run with middleware or observers; any other value is returned unchanged."""
    if isinstance(model, StructuredModel):
        return StructuredModel.for_model(observed(model.inner, agent))
    if not isinstance(model, Model) or isinstance(model, ObservedModel):
        return model
    return ObservedModel.for_model(model, agent)


def unobserved(model: Any) -> Any:
    """Undo ``observed``."""
    if isinstance(model, StructuredModel):
        return StructuredModel.for_model(unobserved(model.inner))
    return model.inner if isinstance(model, ObservedModel) else model


def structured(model: Any) -> Any:
    """Wrap a model so that structured answers fit; any other value is returned unchanged."""
    if not isinstance(model, Model) or isinstance(model, StructuredModel):
        return model
    return StructuredModel.for_model(model)


class WrappingProvider(ModelProvider):
    """A model provider that wraps the models of another one.

    Args:
        inner: The provider.
        wrap: Returns the wrapper of a model.
    """

    def __init__(self, inner: ModelProvider, wrap: Callable[[Any], Any]) -> None:
        self.inner = inner
        self._wrap = wrap

    def get_model(self, model_name: str | None) -> Model:
        """Return the wrapped model of this name."""
        found = self.inner.get_model(model_name)
        own_client_of(found)
        model: Model = self._wrap(found)
        return model

    async def aclose(self) -> None:
        """Release the provider's resources."""
        await self.inner.aclose()

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "inner":  # not set yet while an instance is copied
            raise AttributeError(attribute)
        return getattr(self.inner, attribute)


def observe_models(config: RunConfig, agent: str) -> None:
    """Wrap the models of a RunConfig for a run with middleware or observers."""
    config.model = observed(config.model, agent)
    config.model_provider = WrappingProvider(config.model_provider, partial(observed, agent=agent))
