"""The SDK's RunConfig of one run: what the caller gave, merged with ours."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from agents import Model, ModelProvider, MultiProvider, RunConfig, ToolErrorFormatterArgs

from kantan_agents.bridge.stand_ins import StandInProvider, structured, unobserved
from kantan_agents.errors import InvalidOptionError, ModelNotFoundError
from kantan_agents.models import DefaultProvider, ProviderFactory, resolve_model
from kantan_agents.pipeline import Run
from kantan_agents.tools import answer_missing

_GIVEN = "__kantan_given__"


def effective_run_config(
    given: RunConfig | dict[str, Any] | None, factory: ProviderFactory | None
) -> tuple[RunConfig, ModelProvider | None]:
    """Return the RunConfig for one run, and the model provider if the caller has put one into it.

    Every field the caller set stays, in an object of its own. The model provider is, in this order, the
    caller's own in ``given``, what ``factory`` makes, or the SDK's default one. A model name in
    ``given`` goes to its provider as an agent's does, unless there is a provider of the user's own.

    Raises:
        InvalidOptionError: E75, ``given`` is neither a RunConfig nor a dict of its fields.
    """
    config, callers_provider = _with_provider(given, factory)
    # An agent of the run may have an output type, and take its model from here.
    config.model = structured(config.model)
    config.model_provider = StandInProvider(config.model_provider, structured)
    # A call to a tool that was not shown is answered by us, not by an exception of the SDK.
    config.tool_not_found_behavior = "return_error_to_model"
    config.tool_error_formatter = _answering_missing_tools(config.tool_error_formatter)
    return config, callers_provider


def config_for_delegated(run: Run | None, given: RunConfig | None) -> RunConfig | None:
    """Return the RunConfig for a run that is delegated: what the caller gave, without what is ours.

    Args:
        run: The run that delegates; None if it is none of ours.
        given: The RunConfig of the SDK's run then.
    """
    if run is None:
        return None if given is None else dataclasses.replace(given, trace_id=None)
    config: RunConfig = run.run_config
    return dataclasses.replace(
        config,
        model=unobserved(config.model),
        model_provider=run.model_provider or MultiProvider(),
        tool_error_formatter=getattr(config.tool_error_formatter, _GIVEN, None),
        trace_id=None,
    )


def _answering_missing_tools(formatter: Any) -> Any:
    if formatter is None:
        return _answer_missing_tool

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
    except Exception as error:  # noqa: BLE001 - the SDK swallows it; it ends the run after this turn
        return str(error)


def _with_provider(
    given: RunConfig | dict[str, Any] | None, factory: ProviderFactory | None
) -> tuple[RunConfig, ModelProvider | None]:
    if given is None:
        return RunConfig(model_provider=factory() if factory else DefaultProvider()), None
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
    # A RunConfig made without a provider carries a MultiProvider; it cannot be told from one given.
    if type(given.model_provider) is not MultiProvider:
        return dataclasses.replace(given), given.model_provider
    if factory is not None:
        return dataclasses.replace(given, model_provider=factory()), None
    return dataclasses.replace(given, model=_resolved(given.model)), None


def _resolved(model: str | Model | None) -> str | Model | None:
    if not isinstance(model, str):
        return model
    try:
        return resolve_model(model).model
    except ModelNotFoundError:
        return model  # a name of the SDK's own, such as "litellm/..."
