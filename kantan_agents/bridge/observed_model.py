"""Where a run's model calls can be watched and wrapped, whatever agent makes them.

The SDK takes an agent's model from the agent, or from the provider of the RunConfig. In a run that is
watched it finds a stand-in there, which sends the call through the middleware and tells the observers.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from typing import Any

from agents import Model, ModelProvider, ModelResponse, RunConfig

from kantan_agents.bridge.model_calls import FURTHER, ask, checked, stream
from kantan_agents.bridge.streamed import nobody_reads_deltas
from kantan_agents.bridge.wrapped_stream import WrappedStream
from kantan_agents.interception import ModelCall, around_model_call, asking_agent
from kantan_agents.pipeline import Run, current_run

_PARAMETERS = ("system_instructions", "input", "model_settings", "tools")


class ObservedModel(Model):
    """Stands where a model stood.

    Attributes:
        inner: The model.
    """

    def __init__(self, inner: Model, agent: str) -> None:
        self.inner = inner
        self._agent = agent

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Ask the model, through the middleware of the run."""
        run = current_run.get()
        if run is None or not run.is_watched:
            return await self.inner.get_response(*args, **kwargs)
        call = self._call(run, args, kwargs)
        if not run.model_calls:
            return await ask(call)
        return checked(await around_model_call(run.model_calls, call, ask))

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Ask the model, through the middleware of the run, and stream its answer."""
        run = current_run.get()
        if run is None or not run.is_watched:
            return self.inner.stream_response(*args, **kwargs)
        call = self._call(run, args, kwargs)
        call.is_streamed = True
        passes_deltas = not nobody_reads_deltas(run)
        if run.model_calls:
            return WrappedStream(run, call, passes_deltas).events()
        return stream(call, passes_deltas=passes_deltas)

    def _call(self, run: Run, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ModelCall:
        given = {**dict(zip((*_PARAMETERS, *FURTHER), args, strict=False)), **kwargs}
        instructions, asked, settings, tools = (given.pop(name) for name in _PARAMETERS)
        agent = asking_agent.get() or self._agent
        return ModelCall(run, agent, self.inner, instructions, asked, settings, list(tools), given)

    def get_retry_advice(self, request: Any) -> Any:
        """Return what the model knows about retrying a failed request."""
        return self.inner.get_retry_advice(request)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self.inner._cleanup_on_run_end(owner)

    async def close(self) -> None:
        """Release what the model holds."""
        await self.inner.close()

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "inner":  # of one that is being copied
            raise AttributeError(attribute)
        return getattr(self.inner, attribute)

    def __repr__(self) -> str:
        return repr(self.inner)


def observed(model: Any, agent: str) -> Any:
    """Return a stand-in for a model; anything else as it is."""
    if not isinstance(model, Model) or isinstance(model, ObservedModel):
        return model
    return _class_for(type(model))(model, agent)


def unobserved(model: Any) -> Any:
    """Return the model behind a stand-in."""
    return model.inner if isinstance(model, ObservedModel) else model


@functools.lru_cache(maxsize=256)
def _class_for(kind: Any) -> Any:
    # The names of the model's own class, and its fields: the SDK orders agents of one name by them when a
    # paused run is stored, and must find the same order without the stand-in.
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    fields = getattr(kind, "__dataclass_fields__", None)
    if fields is not None:
        names["__dataclass_fields__"] = fields
    return type(kind.__name__, (ObservedModel,), names)


class ObservedProvider(ModelProvider):
    """Stands where the model provider of a RunConfig stood."""

    def __init__(self, inner: ModelProvider, agent: str) -> None:
        self.inner = inner
        self._agent = agent

    def get_model(self, model_name: str | None) -> Model:
        """Return a stand-in for the model behind ``model_name``."""
        model: Model = observed(self.inner.get_model(model_name), self._agent)
        return model

    async def aclose(self) -> None:
        """Close what the provider holds."""
        await self.inner.aclose()

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "inner":
            raise AttributeError(attribute)
        return getattr(self.inner, attribute)


def observe_models(config: RunConfig, agent: str) -> None:
    """Put stand-ins where a RunConfig names models."""
    config.model = observed(config.model, agent)
    if not isinstance(config.model_provider, ObservedProvider):
        config.model_provider = ObservedProvider(config.model_provider, agent)
