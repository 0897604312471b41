"""Creates a ``Run`` and its pipeline from the caller's arguments."""

from __future__ import annotations

from typing import Any, Protocol

import agents

from kantan_agents.agent.bridge import context_of, effective_run_config
from kantan_agents.agent.running.chosen_arm import ChosenArm, chosen_before, for_states
from kantan_agents.agent.running.drive import raising
from kantan_agents.agent.running.identity import take_identity
from kantan_agents.agent.running.logs import is_debugged, log_event
from kantan_agents.core.context import Context
from kantan_agents.core.events import Emitter, Handler, Observers, emitter_for
from kantan_agents.core.interception import Layers, current_tool_call, inherited_layers, redacted_data
from kantan_agents.core.pipeline import Pipeline, Run, current_run
from kantan_agents.errors import InputTypeError
from kantan_agents.models.named_model import ProviderFactory, use_provider
from kantan_agents.traces.capture.playback import current_playback
from kantan_agents.traces.ids import new_run_id
from kantan_agents.traces.metadata import finite, run_metadata


class RunnableAgent(Protocol):
    """The part of an ``Agent`` that a new run needs."""

    name: str
    pipeline: Pipeline
    layers: Layers
    observers: Observers
    provider_factory: ProviderFactory | None
    standard_metadata: dict[str, Any]

    def trace_metadata(self, context: Context, run_id: str) -> dict[str, Any]:
        """Return the complete trace metadata."""
        ...


def new_run(
    agent: RunnableAgent,
    input: Any,
    context: Context | None,
    options: dict[str, Any],
    *handlers: Handler,
    chosen: ChosenArm | None = None,
) -> tuple[Run, Pipeline]:
    """Return a new run and its pipeline; raises E75 or E78.

    If the trace metadata fail, the pipeline only raises the error, so that the trace records it.
    """
    if not isinstance(input, (str, list, agents.RunState)):
        raise InputTypeError(got=type(input).__name__)
    if chosen is None and for_states:
        chosen = chosen_before(input, agent)
    if chosen is not None:
        agent = chosen.agent
    if context is None:
        context = context_of(input) if isinstance(input, agents.RunState) else {}
    identity = take_identity()
    run_id = identity.run_id or new_run_id()
    config, callers_provider = effective_run_config(options.pop("run_config", None), agent.provider_factory)
    metadata, failure = _metadata_of(agent, context, run_id, chosen)
    if config.trace_metadata:
        metadata = {**finite(config.trace_metadata), **metadata}
    run = Run(agent, input, context, run_id, options, config, metadata, callers_provider)
    run.elapsed, run.is_nested = identity.elapsed, identity.is_nested
    pipeline = _wrapped(agent, run, chosen)
    _place(run)
    if agent.layers.metadata:
        try:
            run.metadata = _with_middleware(agent, run, chosen)
        except Exception as error:  # noqa: BLE001 - raised again as soon as the trace is open
            failure = error
    if failure is not None:
        run.mistake = failure
        # Inside the middleware, which may hide the input from the trace.
        pipeline = Pipeline([*agent.layers.stages, ("trace metadata", raising(failure))])
    run.events = _events_of(agent, run, handlers)
    if agent.provider_factory is not None and callers_provider is None:
        use_provider(run, agent.provider_factory, config.model_provider)
    return run, pipeline


def _metadata_of(
    agent: RunnableAgent, context: Any, run_id: str, chosen: ChosenArm | None
) -> tuple[dict[str, Any], Exception | None]:
    failure: Exception | None = None
    try:
        # The first stage rejects a context that is not a dict, inside the trace.
        metadata = agent.trace_metadata(context if isinstance(context, dict) else {}, run_id)
    except Exception as error:  # noqa: BLE001 - raised again as soon as the trace is open
        metadata, failure = run_metadata({}, agent.standard_metadata, run_id), error
    if chosen is not None:
        return {**metadata, **chosen.metadata}, failure or chosen.mistake
    return metadata, failure


def _wrapped(agent: RunnableAgent, run: Run, chosen: ChosenArm | None) -> Pipeline:
    if chosen is not None:
        run.arm, run.limits = chosen.arm, chosen.limits
    run.model_calls, run.tool_calls = agent.layers.model_calls, agent.layers.tool_calls
    inherited = inherited_layers.get()
    if inherited is None:
        return agent.pipeline
    run.model_calls = (*inherited.model_calls, *run.model_calls)
    run.tool_calls = (*inherited.tool_calls, *run.tool_calls)
    return agent.pipeline.prepend(*inherited.stages)


def is_inside() -> bool:
    """Return whether a new run would be inside another one, or any other open span."""
    return current_run.get() is not None or agents.get_current_span() is not None


def _place(run: Run) -> None:
    parent, playback = current_run.get(), current_playback.get()
    run.is_nested = run.is_nested or is_inside()
    if parent is not None:
        call = current_tool_call.get()
        run.parent_run = parent.id
        run.parent_call = call.call_id if call is not None and call.run is parent else None
    if playback is not None:
        run._tape = playback.tape_for(run)


def _with_middleware(agent: RunnableAgent, run: Run, chosen: ChosenArm | None) -> dict[str, Any]:
    more: dict[str, Any] = {}
    for metadata_of in agent.layers.metadata:
        more |= finite(metadata_of(run))
    standard = agent.standard_metadata if chosen is None else {**agent.standard_metadata, **chosen.metadata}
    return run_metadata(redacted_data(run, {**run.metadata, **more}), standard, run.id)


def _events_of(agent: RunnableAgent, run: Run, handlers: tuple[Handler, ...]) -> Emitter | None:
    parent = current_run.get()
    handlers = (*handlers, *agent.observers.handlers)
    if is_debugged():
        handlers = (*handlers, log_event)
    above = (parent.id, parent.events) if parent is not None else None
    return emitter_for(run.id, agent.name, parent=above, handlers=handlers)
