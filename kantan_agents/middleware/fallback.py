"""``Fallback``: another model answers where one fails."""

from __future__ import annotations

import dataclasses
from typing import Any

import attrs
from agents import Model, ModelResponse, ModelSettings, UserError, custom_span
from agents.models import get_default_model_settings

from kantan_agents.bridge.model_calls import name_of
from kantan_agents.errors import (
    AgentPainException,
    InvalidOptionError,
    KantanAgentsError,
    ProviderRequestError,
    StructuredOutputError,
)
from kantan_agents.interception import Middleware, ModelCall, ModelNext
from kantan_agents.models import resolve_model
from kantan_agents.support.log import get_logger

FALLBACK_SPAN = "fallback"
_OF_ONE_MODEL = (StructuredOutputError, ProviderRequestError, AgentPainException)
_KEPT_BY_THE_PROVIDER = ("previous_response_id", "conversation_id")
_log = get_logger("kantan_agents.middleware")


@attrs.frozen(eq=False)
class _Substitute:
    model: Model
    settings: ModelSettings


class Fallback(Middleware):
    """Asks the next model when one fails, of whatever provider it is.

    Each model call begins with the agent's own model. The next one is asked if that raises what another
    model may not raise: no error of this library but those of one provider (E51, E53), none the SDK puts
    down to its user, no cancellation. What has been streamed cannot be taken back, so after the first text
    a failure stays one. Neither can a conversation be carried over that the provider keeps
    (``previous_response_id``, ``conversation_id``).

    Each step is a span ``fallback`` around the next call, with ``from``, ``to`` and ``error_type``.

    Args:
        *models: What to ask instead, in this order: names, kantan-llm's bundles or SDK models, as for
            ``Agent(model=...)``.

    Raises:
        ModelNotFoundError: E19, kantan-llm cannot resolve one of the names.
        InvalidOptionError: E75, there are no models, or one of them is something else.
    """

    def __init__(self, *models: object) -> None:
        if not models or None in models:
            raise InvalidOptionError(option="models", reason="must be one or more models")
        self._substitutes = tuple(_substitute(model) for model in models)

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        """Ask the model, and the others in its place where it fails."""
        return await self._ask(call, call_next, self._substitutes)

    async def _ask(
        self, call: ModelCall, call_next: ModelNext, left: tuple[_Substitute, ...]
    ) -> ModelResponse:
        try:
            return await call_next(call)
        except Exception as error:
            if not left or not _may_help(call, error):
                raise
            failed = error
        substitute, *others = left
        data = {
            "from": _shown(call.model),
            "to": _shown(substitute.model),
            "error_type": type(failed).__name__,
            "agent": call.agent,
        }
        _log.warning("model failed, asking another", run_id=call.run.id, **data)
        call.settings = _settings_for(substitute, call)
        call.model = substitute.model
        try:
            with custom_span(FALLBACK_SPAN, data):
                return await self._ask(call, call_next, tuple(others))
        except Exception as error:
            _chain(error, failed)
            raise

    def __repr__(self) -> str:
        return f"Fallback({', '.join(_shown(substitute.model) for substitute in self._substitutes)})"


def _substitute(model: object) -> _Substitute:
    resolved = resolve_model(model)
    if resolved.model is None:
        raise InvalidOptionError(option="models", reason=f"must be models, not {model!r}")
    name = name_of(resolved.model)
    return _Substitute(resolved.model, resolved.settings or get_default_model_settings(name))


def _may_help(call: ModelCall, error: Exception) -> bool:
    if call.has_streamed or isinstance(error, UserError):
        return False
    # E40 comes here where the provider has refused all forms in which an output can be asked for.
    if isinstance(error, KantanAgentsError) and not isinstance(error, _OF_ONE_MODEL):
        return False
    return not any(call.options.get(name) for name in _KEPT_BY_THE_PROVIDER)


def _settings_for(substitute: _Substitute, call: ModelCall) -> ModelSettings:
    """Return the call's settings, with the other model's defaults where they are the defaults of its own."""
    name = name_of(call.model) if isinstance(call.model, Model) else call.model
    defaults = get_default_model_settings(name)
    changes = {
        field.name: getattr(substitute.settings, field.name)
        for field in dataclasses.fields(defaults)
        if getattr(call.settings, field.name) == getattr(defaults, field.name)
    }
    settings: ModelSettings = dataclasses.replace(call.settings, **changes)
    return settings


def _shown(model: Any) -> str:
    name = name_of(model) if isinstance(model, Model) else model
    return str(name) if name else type(model).__name__


def _chain(error: BaseException, earlier: Exception) -> None:
    """Have ``earlier`` stand at the end of what led to ``error``, so that no failure is lost."""
    led_to = {id(cause) for cause in _led_to(earlier)}
    last = error
    for cause in _led_to(error):
        if id(cause) in led_to:
            return
        last = cause
    last.__context__ = earlier


def _led_to(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and all(current is not known for known in found):
        found.append(current)
        current = current.__cause__ or current.__context__
    return found
