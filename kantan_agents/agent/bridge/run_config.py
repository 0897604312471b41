"""The caller's RunConfig of one run, extended for this library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from typing import Any

from agents import Model, ModelProvider, MultiProvider, RunConfig, ToolErrorFormatterArgs

from kantan_agents.agent.bridge.wrap_models import WrappingProvider, structured, unobserved
from kantan_agents.core.pipeline import Run
from kantan_agents.errors import InvalidOptionError, ModelNotFoundError
from kantan_agents.models.named_model import DefaultProvider, ProviderFactory
from kantan_agents.models.resolve import own_client_of, resolve_model
from kantan_agents.tools.listing import answer_missing

# Fields that the SDK converts from a dict.
_CONVERTED = ("model_settings", "session_settings", "sandbox", "tool_execution")
_GIVEN = "__kantan_given__"


def effective_run_config(
    given: RunConfig | dict[str, Any] | None, factory: ProviderFactory | None
) -> tuple[RunConfig, ModelProvider | None]:
    """Return a complete copy of the caller's RunConfig, and the caller's model provider.

    The copy's provider is the caller's, else the ``factory``'s, else the default. A model name is resolved
    like an agent's, unless the caller has set a provider or factory. E75 if ``given`` is neither a RunConfig
    nor a dict.
    """
    if given is None:
        config, callers_provider = RunConfig(model_provider=factory() if factory else DefaultProvider()), None
    else:
        config, callers_provider = _with_provider(given, factory)
    # An agent with an output type may take its model from this config.
    if config.model is not None:
        config.model = structured(config.model)
    config.model_provider = WrappingProvider(config.model_provider, structured)
    # The answer to a call of a hidden tool is a message instead of an SDK exception.
    config.tool_not_found_behavior = "return_error_to_model"
    config.tool_error_formatter = (
        _answer_missing_tool
        if config.tool_error_formatter is None
        else _answering_missing_tools(config.tool_error_formatter)
    )
    return config, callers_provider


def changed_config(config: RunConfig, **changes: Any) -> RunConfig:
    """Return a copy with some fields changed.

    ``dataclasses.replace`` would call a user's constructor, lose other attributes and, with model settings,
    make a turn 1.7 times as long.
    """
    if any(isinstance(getattr(config, field, None), dict) for field in _CONVERTED):
        return dataclasses.replace(config, **changes)
    made = copy.copy(config)
    for field, value in changes.items():
        setattr(made, field, value)
    return made


def config_with_model(config: RunConfig, model: Any) -> RunConfig:
    """Return a copy in which every agent has this model; E19 for an unknown name."""
    return changed_config(config, model=structured(resolve_model(model).model))


def config_for_delegated(run: Run | None, given: RunConfig | None) -> RunConfig | None:
    """Return the caller's RunConfig for a delegated run.

    Under the SDK's own runner, ``run`` is None and ``given`` is its config.
    """
    if run is None:
        return None if given is None else changed_config(given, trace_id=None)
    config: RunConfig = run.run_config
    return changed_config(
        config,
        model=unobserved(config.model),
        model_provider=run.model_provider or MultiProvider(),
        tool_error_formatter=getattr(config.tool_error_formatter, _GIVEN, None),
        trace_id=None,
    )


def _answering_missing_tools(formatter: Any) -> Any:
    async def format_error(args: ToolErrorFormatterArgs[Any]) -> Any:
        ours = await _answer_missing_tool(args)
        if ours is not None:
            args = dataclasses.replace(args, default_message=ours)
        message = formatter(args)
        message = await message if inspect.isawaitable(message) else message
        return ours if message is None else message

    setattr(format_error, _GIVEN, formatter)
    return format_error


async def _answer_missing_tool(args: ToolErrorFormatterArgs[Any]) -> str | None:
    if args.kind != "tool_not_found":
        return None
    try:
        return await answer_missing(args.run_context, args.tool_name, args.call_id)
    except Exception as error:  # noqa: BLE001 - the SDK would swallow it; it aborts the run after this turn
        return str(error)


def _with_provider(
    given: RunConfig | dict[str, Any], factory: ProviderFactory | None
) -> tuple[RunConfig, ModelProvider | None]:
    if isinstance(given, dict):
        known = {field.name for field in dataclasses.fields(RunConfig)}
        unknown = ", ".join(sorted(map(str, given.keys() - known)))
        if unknown:
            raise InvalidOptionError(option="run_config", reason=f"RunConfig has no field {unknown}")
        given = RunConfig(**given)
    if not isinstance(given, RunConfig):
        raise InvalidOptionError(
            option="run_config",
            reason=f"must be a RunConfig or a dict of its fields, not {type(given).__name__}",
        )
    # A RunConfig created without a provider holds a MultiProvider, like one created with a MultiProvider.
    if type(given.model_provider) is not MultiProvider:
        own_client_of(given.model)
        return changed_config(given), given.model_provider
    if factory is not None:
        return changed_config(given, model_provider=factory()), None
    provider = DefaultProvider(given.model_provider)
    return changed_config(given, model=_resolved(given.model), model_provider=provider), None


def _resolved(model: str | Model | None) -> str | Model | None:
    if not isinstance(model, str):
        own_client_of(model)
        return model
    try:
        return resolve_model(model).model
    except ModelNotFoundError:
        return model  # a name that only the SDK resolves, such as "litellm/..."
