"""The SDK's configuration of the runs of an experiment."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from agents import ModelSettings, RunConfig

from kantan_agents.agent import Agent
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.experiment.reached import Reached
from kantan_agents.middleware import Redact, Retry


def checked_config(given: RunConfig | Mapping[str, Any] | None) -> RunConfig:
    """Return the configuration of runs; E75 if invalid."""
    try:
        return given if isinstance(given, RunConfig) else RunConfig(**({} if given is None else given))
    except (TypeError, ValueError) as error:
        raise InvalidOptionError(option="run_config", reason=str(error)) from error


def with_retry(config: RunConfig, retry: Retry, agents: Iterable[Agent[Any]]) -> RunConfig:
    """Return a configuration that retries model calls: middleware would change variants; E75 for tools."""
    if retry.tools:
        reason = "retries model calls only; for tools, give the agents Retry(tools=...) as middleware"
        raise InvalidOptionError(option="retry", reason=reason)
    settings = config.model_settings or ModelSettings()
    own = any(_has_own_retry(one) for one in agents)
    if own or settings.retry is not None:
        return config
    return dataclasses.replace(
        config, model_settings=dataclasses.replace(settings, retry=retry.model_settings)
    )


async def withholds(config: RunConfig, agents: Iterable[Agent[Any]]) -> bool:
    """Return whether traces lack content: one reachable agent with ``Redact`` is enough."""
    if config.tracing_disabled or not config.trace_include_sensitive_data:
        return True
    reached = [one for agent in agents for one in (await Reached.from_agent(agent)).agents]
    own = [one for one in reached if isinstance(one, Agent)]
    return any(isinstance(one, Redact) for agent in own for one in agent.layers.middleware)


def _has_own_retry(agent: Agent[Any]) -> bool:
    is_set = agent.sdk_agent.model_settings.retry is not None
    return is_set or any(isinstance(one, Retry) for one in agent.layers.middleware)
