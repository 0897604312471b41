"""A model name as an SDK model: what an SDK agent of ours carries."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from agents import Model, ModelProvider, ModelResponse, MultiProvider
from agents.retry import ModelRetryAdvice, ModelRetryAdviceRequest

from kantan_agents.models.client_pool import ClientPool
from kantan_agents.pipeline import current_run


class NamedModel(Model):
    """The model kantan-llm resolved a name to, whatever runs the agent and in whatever event loop.

    A model object rather than a name on the SDK agent, because the SDK would send a name to OpenAI
    wherever the agent is run by somebody else: by ``Runner.run(agent.sdk_agent)``, or as the hand-off
    target of an SDK agent. Every call goes to the running loop's own model, and so does every
    attribute the SDK asks for.

    Args:
        name: The model name as the provider knows it.
        clients: The clients behind it.
    """

    def __init__(self, name: str, clients: ClientPool) -> None:
        self.name = name
        self.clients = clients

    def _model(self) -> Model:
        run = current_run.get()
        provider = run.run_config.model_provider if run is not None and run.run_config else None
        # A model provider the caller has put into the run's RunConfig knows better.
        if provider is not None and type(provider) not in (MultiProvider, DefaultProvider):
            model: Model = provider.get_model(self.name)
            return model
        return self.clients.model()

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Ask the model."""
        return await self._model().get_response(*args, **kwargs)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Ask the model and stream its answer."""
        return self._model().stream_response(*args, **kwargs)

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        """Return what the model knows about retrying a failed request."""
        return self._model().get_retry_advice(request)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self._model()._cleanup_on_run_end(owner)

    async def close(self) -> None:
        """Release what the running loop's model holds."""
        await self._model().close()

    def __getattr__(self, attribute: str) -> Any:
        try:
            model = self._model()
        except RuntimeError:  # no running loop, so no model yet
            raise AttributeError(attribute) from None
        return getattr(model, attribute)

    def __repr__(self) -> str:
        return f"NamedModel({self.name!r})"


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
