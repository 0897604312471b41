"""``NamedModel``: a model name as an SDK model."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, Protocol

from agents import Model, ModelProvider, ModelResponse, MultiProvider
from agents.models import get_default_model
from agents.retry import ModelRetryAdvice, ModelRetryAdviceRequest
from openai import OpenAIError

from kantan_agents.core.pipeline import Run, current_run
from kantan_agents.errors import ModelNotConfiguredError
from kantan_agents.models.ask_model import ask_model, stream_model
from kantan_agents.models.client_pool import own_connections
from kantan_agents.models.configuration import OPENAI, check_key, check_url, missing
from kantan_agents.models.stream_usage import stream_with_usage


class ModelFinder(Protocol):
    """Finds the current model."""

    def model(self) -> Model:
        """Return the model; E47 without its key or URL."""
        ...


ProviderFactory = Callable[[], ModelProvider]


class NamedModel(Model):
    """Delegates to the model of the running event loop or of the run's provider.

    The SDK would send a name to OpenAI when it runs the agent without this library.
    """

    def __init__(self, name: str | None, clients: ModelFinder) -> None:
        self.name = name
        self.clients = clients

    def current_model(self) -> Model:
        """Return the run's or the loop's model."""
        run = current_run.get()
        if run is not None and run.model_provider is not None:
            model: Model = run.model_provider.get_model(self.name)
            own_connections(model)
            return model
        try:
            return self.clients.model()
        except ModelNotConfiguredError:
            stand_in: Model | None = None if run is None or run._tape is None else run._tape.model(self.name)
            if stand_in is None:
                raise
            return stand_in

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        """Call the model."""
        return await _asked(self.current_model(), args, kwargs)

    def stream_response(
        self, system_instructions: str | None, input: Any, model_settings: Any, *args: Any, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """Call the model and stream its response."""
        model = self.current_model()
        return stream_with_usage(
            model,
            model_settings,
            lambda settings: _streamed(model, (system_instructions, input, settings, *args), kwargs),
        )

    def get_retry_advice(self, request: ModelRetryAdviceRequest) -> ModelRetryAdvice | None:
        """Return the model's retry advice."""
        return self.current_model().get_retry_advice(request)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        with suppress(ModelNotConfiguredError):  # the run has failed with this error
            await self.current_model()._cleanup_on_run_end(owner)

    async def close(self) -> None:
        """Close the running loop's model."""
        await self.current_model().close()

    def __getattr__(self, attribute: str) -> Any:
        try:
            model = self.current_model()
        except (RuntimeError, ModelNotConfiguredError):  # no running loop or no key, so no model yet
            raise AttributeError(attribute) from None
        return getattr(model, attribute)

    def __repr__(self) -> str:
        return f"NamedModel({self.name!r})"


# In the library's runs, the wrapper makes the request fit. The SDK's runner has none.
def _asked(model: Model, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Awaitable[ModelResponse]:
    if current_run.get() is None:
        return ask_model(model, args, kwargs)
    return model.get_response(*args, **kwargs)


def _streamed(model: Model, args: tuple[Any, ...], kwargs: dict[str, Any]) -> AsyncIterator[Any]:
    if current_run.get() is None:
        return stream_model(model, args, kwargs)
    return model.stream_response(*args, **kwargs)


class AnthropicModels:
    """Finds a Claude model: one ``AnthropicProvider`` for all event loops."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def model(self) -> Model:
        """Return the model."""
        return self._model


class LaterClients:
    """Resolves a name at each call until its provider is configured."""

    def __init__(self, name: str, resolve: Callable[[str], tuple[str, ModelFinder]]) -> None:
        self._name = name
        self._resolve = resolve
        self._found: ModelFinder | None = None

    def model(self) -> Model:
        """Return the model; E47 if still not configured, E19 if unknown."""
        return self.resolve().model()

    def resolve(self) -> ModelFinder:
        """Return the clients; E47 and E19 as for ``model``."""
        if self._found is None:
            self._found = self._resolve(self._name)[1]
        return self._found


class FactoryClients:
    """Gets models from a custom provider."""

    def __init__(self, factory: ProviderFactory, name: str | None) -> None:
        self._factory = factory
        self._name = name

    def model(self) -> Model:
        """Return the model of the run's provider; outside of a run, of a new provider."""
        run = current_run.get()
        provider = run.state.get((_PROVIDER, id(self._factory))) if run is not None else None
        if provider is None:
            provider = self._factory()
            if run is not None:
                use_provider(run, self._factory, provider)
        model: Model = provider.get_model(self._name)
        own_connections(model)
        return model


_PROVIDER = object()


def use_provider(run: Run, factory: ProviderFactory, provider: ModelProvider) -> None:
    """Make ``run`` use ``provider`` instead of calling ``factory``."""
    run.state[_PROVIDER, id(factory)] = provider


class DefaultProvider(ModelProvider):
    """The SDK's provider, for models that this library does not resolve.

    Each run gets a new one, which reads ``set_default_openai_client`` and the environment at first use.
    """

    def __init__(self, provider: MultiProvider | None = None) -> None:
        self._provider = provider

    def get_model(self, model_name: str | None) -> Model:
        """Return the SDK's model for ``model_name``."""
        if self._provider is None:
            self._provider = MultiProvider()
        try:
            model = self._provider.get_model(model_name)
        except Exception as error:
            # The client's messages name options that an agent lacks.
            failed = _environment_error(model_name, error)
            if failed is None:
                raise
            run = current_run.get()
            stand_in: Model | None = None if run is None or run._tape is None else run._tape.model(model_name)
            if stand_in is None:
                raise failed from error
            return stand_in
        _check_environment_of(model, model_name)
        own_connections(model)
        return model

    async def aclose(self) -> None:
        """Close the SDK's provider, if it was created."""
        if self._provider is not None:
            await self._provider.aclose()


def _environment_error(name: str | None, error: Exception) -> ModelNotConfiguredError | None:
    model, url = name or get_default_model(), os.environ.get("OPENAI_BASE_URL")
    if type(error) is OpenAIError and not os.environ.get(OPENAI.key):
        return missing(model, OPENAI)
    try:
        if url:
            check_url(model, "OPENAI_BASE_URL", url)
    except ModelNotConfiguredError as failed:
        return failed
    return None


def _check_environment_of(model: Model, name: str | None) -> None:
    """Raise E47 if the key or URL in the environment is wrong."""
    client = getattr(model, "_client", None)
    key, url = os.environ.get(OPENAI.key), os.environ.get("OPENAI_BASE_URL")
    if key is not None and getattr(client, "api_key", None) == key:
        check_key(name or get_default_model(), OPENAI.key, key)
        if url:
            check_url(name or get_default_model(), "OPENAI_BASE_URL", url)


def check_configured(model: Model | None) -> None:
    """Raise E47 if the model (by default the SDK's) is not configured."""
    if model is None:
        DefaultProvider().get_model(None)
    elif isinstance(model, NamedModel) and isinstance(model.clients, LaterClients):
        model.clients.resolve()
