"""Which stand-ins the models of an agent and of a RunConfig get.

Around a model that a run watches stands an ``ObservedModel``; around the model of an agent with an output
type a ``StructuredModel``, outside of it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from agents import Model, ModelProvider, RunConfig

from kantan_agents.bridge.observed_model import ObservedModel
from kantan_agents.bridge.structured_model import StructuredModel


def observed(model: Any, agent: str) -> Any:
    """Return a stand-in for a model in a run that is watched; anything else as it is."""
    if isinstance(model, StructuredModel):
        return StructuredModel.for_model(observed(model.inner, agent))
    if not isinstance(model, Model) or isinstance(model, ObservedModel):
        return model
    return ObservedModel.for_model(model, agent)


def unobserved(model: Any) -> Any:
    """Return what stood there before ``observed``."""
    if isinstance(model, StructuredModel):
        return StructuredModel.for_model(unobserved(model.inner))
    return model.inner if isinstance(model, ObservedModel) else model


def structured(model: Any) -> Any:
    """Return a stand-in that answers structured requests with what fits; anything but a model as it is."""
    if not isinstance(model, Model) or isinstance(model, StructuredModel):
        return model
    return StructuredModel.for_model(model)


class StandInProvider(ModelProvider):
    """Stands where the model provider of a RunConfig stood.

    Args:
        inner: The provider.
        put: Puts the stand-in where the model stood.
    """

    def __init__(self, inner: ModelProvider, put: Callable[[Any], Any]) -> None:
        self.inner = inner
        self._put = put

    def get_model(self, model_name: str | None) -> Model:
        """Return a stand-in for the model behind ``model_name``."""
        model: Model = self._put(self.inner.get_model(model_name))
        return model

    async def aclose(self) -> None:
        """Close what the provider holds."""
        await self.inner.aclose()

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "inner":  # of one that is being copied
            raise AttributeError(attribute)
        return getattr(self.inner, attribute)


def observe_models(config: RunConfig, agent: str) -> None:
    """Put stand-ins where a RunConfig names models, for a run that is watched."""
    config.model = observed(config.model, agent)
    config.model_provider = StandInProvider(config.model_provider, partial(observed, agent=agent))
