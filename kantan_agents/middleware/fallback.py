"""``Fallback``: call another model when one fails."""

from __future__ import annotations

import dataclasses
from typing import Any

import attrs
from agents import Model, ModelResponse, ModelSettings, UserError, custom_span
from agents.models import get_default_model_settings

from kantan_agents.core.interception import Middleware, ModelCall, ModelNext
from kantan_agents.errors import (
    AgentPainException,
    AnswerCutOffError,
    InvalidOptionError,
    KantanAgentsError,
    ModelNotConfiguredError,
    ProviderRequestError,
    RequestTooLongError,
    StructuredOutputError,
)
from kantan_agents.models.named_model import check_configured
from kantan_agents.models.origin import name_of
from kantan_agents.models.resolve import resolve_model
from kantan_agents.support.log import get_logger

FALLBACK_SPAN = "fallback"
_MODEL_SPECIFIC = (
    StructuredOutputError,
    ProviderRequestError,
    AgentPainException,
    AnswerCutOffError,
    RequestTooLongError,
)
_PROVIDER_CONVERSATION = ("previous_response_id", "conversation_id")
_log = get_logger("kantan_agents.middleware")


@attrs.frozen(eq=False)
class _Substitute:
    model: Model
    settings: ModelSettings


class Fallback(Middleware):
    """Calls the next model when one fails, across providers.

    Every model call starts with the agent's own model. The next model is called if the failure may be
    specific to one model. Other errors are raised immediately: the SDK's ``UserError``, cancellation, and
    errors of this library except those that concern one model only (E40, E51, E53, E177, E206).

    There is no fallback after the first text of an answer has been streamed, because it cannot be taken back,
    nor for a conversation stored at the provider (``previous_response_id``, ``conversation_id``).

    Settings that are the SDK's defaults for the first model are replaced with the defaults for the next one;
    explicit settings stay. The trace records each fallback as a span ``fallback`` around the next call, with
    ``from``, ``to`` and ``error_type``.

    Args:
        *models: The models to call instead, in order: names, kantan-llm bundles or SDK models, as for
            ``Agent(model=...)``.

    Raises:
        ModelNotFoundError: E19, one of the names is unknown. A missing key is logged, and is E47 when the
            model is called.
        InvalidOptionError: E75, no model is given, or an argument is not a model.
    """

    def __init__(self, *models: object) -> None:
        if not models or None in models:
            raise InvalidOptionError(option="models", reason="must be one or more models")
        self._substitutes = tuple(_substitute(model) for model in models)

    async def model_call(self, call: ModelCall, call_next: ModelNext) -> ModelResponse:
        """Call the model, and on failure the substitutes."""
        return await self._try(call, call_next, self._substitutes)

    async def _try(
        self, call: ModelCall, call_next: ModelNext, remaining: tuple[_Substitute, ...]
    ) -> ModelResponse:
        try:
            return await call_next(call)
        except Exception as error:
            if not remaining or not _may_help(call, error):
                raise
            failed = error
        substitute, *others = remaining
        data = {
            "from": _display_name(call.model),
            "to": _display_name(substitute.model),
            "error_type": type(failed).__name__,
            "agent": call.agent,
        }
        _log.warning("model failed, asking another", run_id=call.run.id, **data)
        call.settings = _settings_for(substitute, call)
        call.model = substitute.model
        try:
            with custom_span(FALLBACK_SPAN, data):
                return await self._try(call, call_next, tuple(others))
        except Exception as error:
            _append_to_chain(error, failed)
            raise

    def __repr__(self) -> str:
        return f"Fallback({', '.join(_display_name(substitute.model) for substitute in self._substitutes)})"


def _substitute(model: object) -> _Substitute:
    resolved = resolve_model(model)
    if resolved.model is None:
        raise InvalidOptionError(option="models", reason=f"must be models, not {model!r}")
    try:
        check_configured(resolved.model)
    except ModelNotConfiguredError as error:
        # Otherwise it would be noticed only when another model fails.
        _log.warning(f"a fallback cannot be called: {error}", model=error.model)
    name = name_of(resolved.model)
    return _Substitute(resolved.model, resolved.settings or get_default_model_settings(name))


def _may_help(call: ModelCall, error: Exception) -> bool:
    if call.has_streamed or isinstance(error, UserError):
        return False
    # The error is E40 if the provider rejected every form of requesting structured output.
    if isinstance(error, KantanAgentsError) and not isinstance(error, _MODEL_SPECIFIC):
        return False
    return not any(call.options.get(name) for name in _PROVIDER_CONVERSATION)


def _settings_for(substitute: _Substitute, call: ModelCall) -> ModelSettings:
    """Replace the failed model's defaults with the substitute's."""
    name = name_of(call.model) if isinstance(call.model, Model) else call.model
    defaults = get_default_model_settings(name)
    changes = {
        field.name: getattr(substitute.settings, field.name)
        for field in dataclasses.fields(defaults)
        if getattr(call.settings, field.name) == getattr(defaults, field.name)
    }
    settings: ModelSettings = dataclasses.replace(call.settings, **changes)
    return settings


def _display_name(model: Any) -> str:
    name = name_of(model) if isinstance(model, Model) else model
    return str(name) if name else type(model).__name__


def _append_to_chain(error: BaseException, earlier: Exception) -> None:
    """Append to the cause chain, so that no failure is lost."""
    earlier_errors = {id(cause) for cause in _error_chain(earlier)}
    last = error
    for cause in _error_chain(error):
        if id(cause) in earlier_errors:
            return
        last = cause
    last.__context__ = earlier


def _error_chain(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and all(current is not known for known in found):
        found.append(current)
        current = current.__cause__ or current.__context__
    return found
