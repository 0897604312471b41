"""A model name as an SDK model: what an SDK agent of ours carries."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from agents import Model, ModelProvider, ModelResponse, MultiProvider
from agents.retry import ModelRetryAdvice, ModelRetryAdviceRequest

from kantan_agents.models.client_pool import ClientPool
from kantan_agents.pipeline import Run, current_run

ProviderFactory = Callable[[], ModelProvider]


class NamedModel(Model):
    """The model a name was resolved to, whatever runs the agent and in whatever event loop.

    A model object rather than a name on the SDK agent, because the SDK would send a name to OpenAI
    wherever the agent is run by somebody else: by ``Runner.run(agent.sdk_agent)``, or as the hand-off
    target of an SDK agent. Every call goes to the running loop's own model, and so does every
    attribute the SDK asks for.

    Args:
        name: The model name as the provider knows it; None is the provider's default.
        clients: What finds the model for the running loop or run.
    """

    def __init__(self, name: str | None, clients: ClientPool | FactoryClients) -> None:
        self.name = name
        self.clients = clients

    def behind(self) -> Model:
        """Return the model for the running loop, or that of the run's own provider."""
        run = current_run.get()
        if run is not None and run.model_provider is not None:
            model: Model = run.model_provider.get_model(self.name)
            return model
        return self.clients.model()

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Ask the model."""
        return await self.behind().get_response(*args, **kwargs)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Ask the model and stream its answer."""
        return self.behind().stream_response(*args, **kwargs)

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        """Return what the model knows about retrying a failed request."""
        return self.behind().get_retry_advice(request)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self.behind()._cleanup_on_run_end(owner)

    async def close(self) -> None:
        """Release what the running loop's model holds."""
        await self.behind().close()

    def __getattr__(self, attribute: str) -> Any:
        try:
            model = self.behind()
        except RuntimeError:  # no running loop, so no model yet
            raise AttributeError(attribute) from None
        return getattr(model, attribute)

    def __repr__(self) -> str:
        return f"NamedModel({self.name!r})"


class FactoryClients:
    """Models of the user's own provider, which ``model_provider_factory`` makes once a run.

    Args:
        factory: Makes the provider.
        name: The model name to ask it for.
    """

    def __init__(self, factory: ProviderFactory, name: str | None) -> None:
        self._factory = factory
        self._name = name

    def model(self) -> Model:
        """Return the model for the current run; outside of any, from a provider made for it."""
        run = current_run.get()
        provider = run.state.get((_PROVIDER, id(self._factory))) if run is not None else None
        if provider is None:
            provider = self._factory()
            if run is not None:
                keep_provider(run, self._factory, provider)
        model: Model = provider.get_model(self._name)
        return model


_PROVIDER = object()


def keep_provider(run: Run, factory: ProviderFactory, provider: ModelProvider) -> None:
    """Use ``provider`` for the rest of ``run`` wherever ``factory`` would make another one."""
    run.state[_PROVIDER, id(factory)] = provider


class DefaultProvider(ModelProvider):
    """The SDK's own provider, for models that carry no client of ours; made when it is first asked.

    A new one in every run, so that ``set_default_openai_client`` and the environment are read as they
    are then, at no cost to runs that never ask.
    """

    def __init__(self) -> None:
        self._provider: MultiProvider | None = None

    def get_model(self, model_name: str | None) -> Model:
        """Return the model behind ``model_name``."""
        if self._provider is None:
            self._provider = MultiProvider()
        return self._provider.get_model(model_name)

    async def aclose(self) -> None:
        """Close what the SDK's provider holds."""
        if self._provider is not None:
            await self._provider.aclose()
