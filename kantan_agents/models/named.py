"""``NamedModel``: a model name as an SDK model, which finds its client at each call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from agents import Model, ModelProvider, ModelResponse, MultiProvider
from agents.retry import ModelRetryAdvice, ModelRetryAdviceRequest

from kantan_agents.models.client_pool import ClientPool
from kantan_agents.pipeline import Run, current_run

ProviderFactory = Callable[[], ModelProvider]


class NamedModel(Model):
    """Delegates every call and attribute to the model of the running event loop or of the run's provider.

    The SDK agent holds this object rather than the name, because the SDK would send a name to OpenAI when the
    agent is run without this library: by ``Runner.run(agent.sdk_agent)``, or as a hand-off target of an SDK
    agent.

    Args:
        name: The model's name at its provider; None for the provider's default model.
        clients: Finds the model of the running loop or run.
    """

    def __init__(self, name: str | None, clients: ClientPool | FactoryClients) -> None:
        self.name = name
        self.clients = clients

    def current_model(self) -> Model:
        """Return the model of the running loop; in a run with a model provider, that provider's model."""
        run = current_run.get()
        if run is not None and run.model_provider is not None:
            model: Model = run.model_provider.get_model(self.name)
            return model
        return self.clients.model()

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Call the model."""
        return await self.current_model().get_response(*args, **kwargs)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Call the model and stream its response."""
        return self.current_model().stream_response(*args, **kwargs)

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        """Return the model's advice on whether to retry a failed request."""
        return self.current_model().get_retry_advice(request)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self.current_model()._cleanup_on_run_end(owner)

    async def close(self) -> None:
        """Close the running loop's model."""
        await self.current_model().close()

    def __getattr__(self, attribute: str) -> Any:
        try:
            model = self.current_model()
        except RuntimeError:  # no running loop, so no model yet
            raise AttributeError(attribute) from None
        return getattr(model, attribute)

    def __repr__(self) -> str:
        return f"NamedModel({self.name!r})"


class FactoryClients:
    """Gets models from a custom provider, which ``model_provider_factory`` creates once per run.

    Args:
        factory: Creates the provider.
        name: The model name to get from it; None for its default.
    """

    def __init__(self, factory: ProviderFactory, name: str | None) -> None:
        self._factory = factory
        self._name = name

    def model(self) -> Model:
        """Return the model of the current run's provider; outside of a run, of a new provider."""
        run = current_run.get()
        provider = run.state.get((_PROVIDER, id(self._factory))) if run is not None else None
        if provider is None:
            provider = self._factory()
            if run is not None:
                use_provider(run, self._factory, provider)
        model: Model = provider.get_model(self._name)
        return model


_PROVIDER = object()


def use_provider(run: Run, factory: ProviderFactory, provider: ModelProvider) -> None:
    """Make ``run`` use ``provider`` instead of calling ``factory``."""
    run.state[_PROVIDER, id(factory)] = provider


class DefaultProvider(ModelProvider):
    """The SDK's own provider, for models that this library does not resolve; created on first use.

    Each run gets a new one, so that ``set_default_openai_client`` and the environment are read at that time.
    Runs that do not need it pay nothing.
    """

    def __init__(self) -> None:
        self._provider: MultiProvider | None = None

    def get_model(self, model_name: str | None) -> Model:
        """Return the SDK's model for ``model_name``."""
        if self._provider is None:
            self._provider = MultiProvider()
        return self._provider.get_model(model_name)

    async def aclose(self) -> None:
        """Close the SDK's provider, if it was created."""
        if self._provider is not None:
            await self._provider.aclose()
