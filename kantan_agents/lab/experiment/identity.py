"""The identity of a variant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents import RunConfig, Tool

from kantan_agents.agent import Agent
from kantan_agents.core.prompt import Prompt
from kantan_agents.errors import KantanAgentsError
from kantan_agents.lab.experiment.reached import Reached, tools_of
from kantan_agents.models.structured import output_schema
from kantan_agents.traces.capture.canonical import content_hash, decode
from kantan_agents.traces.recorder.plain_json import encode_anything


def plain(value: Any) -> Any:
    """Return JSON data; other values become strings."""
    return decode(encode_anything(value))


async def identity_of(name: str, agent: Agent[Any], options: Mapping[str, Any]) -> str:
    """Return a hash of a variant, with all agents that the run can reach.

    It does not cover code, that is tools, renderers and middleware with their options, nor the address of the
    model's server.
    """
    reached = await Reached.from_agent(agent)
    agents = [_agent(one) for one in reached.agents]
    delegated = [[definition.name, plain(definition)] for _, _, definition in reached.delegations()]
    return content_hash(plain([name, agents, delegated, options]))


def run_options(config: RunConfig, context: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the identity of options, without empty ones."""
    settings = config.model_settings is not None or config.model is not None
    found = {
        "run_config": described_config(config) if settings else None,
        "context": _data(context),
        **options,
    }
    return {key: value for key, value in found.items() if value}


def described_config(config: RunConfig) -> dict[str, Any]:
    """Return the identity of a configuration."""
    model = config.model
    named = model is None or isinstance(model, str)
    return {
        "model": model if named else getattr(model, "model", type(model).__name__),
        "model_settings": plain(config.model_settings),
    }


def model_of(agent: Agent[Any]) -> str | None:
    """Return the name of an agent's model; None for the SDK's default."""
    return _name_of(agent.given.model)


def _agent(agent: Any) -> dict[str, Any]:
    own = isinstance(agent, Agent)
    return {
        "agent": agent.name,
        "prompt": _prompt(agent.instructions),
        "model": model_of(agent) if own else _name_of(agent.model),
        "options": decode(agent.recorded_options) if own else None,
        "settings": {
            key: value
            for key, value in vars((agent.sdk_agent if own else agent).model_settings).items()
            if value is not None
        },
        "output": _schema(agent.output_type),
        "tools": sorted((_tool(tool) for tool in tools_of(agent)), key=str),
        "handoffs": [getattr(one, "name", None) or getattr(one, "agent_name", "") for one in agent.handoffs],
    }


def _prompt(given: Any) -> Any:
    if isinstance(given, Prompt):
        return [given.name, given.version, given.text]
    return given if isinstance(given, str) else getattr(given, "__qualname__", type(given).__name__)


def _tool(tool: Tool) -> list[Any]:
    return [tool.name, getattr(tool, "description", None), getattr(tool, "params_json_schema", None)]


def _schema(output_type: Any) -> Any:
    try:
        schema = output_schema(output_type)
        return None if schema is None or schema.is_plain_text() else schema.json_schema()
    except (KantanAgentsError, ValueError, TypeError):  # the run will raise the error
        return str(output_type)


def _name_of(model: Any) -> str | None:
    if model is None or isinstance(model, str):
        return model
    named = getattr(model, "model", None)
    return named if isinstance(named, str) else type(model).__name__


def _data(value: Any) -> Any:
    """Objects become the name of their class, alike in every process."""
    if isinstance(value, Mapping):
        return {str(key): _data(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_data(inner) for inner in value]
    return value if value is None or isinstance(value, (str, int, float)) else type(value).__name__
