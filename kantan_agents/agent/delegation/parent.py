"""The parent of a delegation: the calling agent and its run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import agents
import attrs

from kantan_agents.agent import Agent
from kantan_agents.agent.bridge import SDKAgent, unobserved
from kantan_agents.core.pipeline import Run, current_run
from kantan_agents.tool_rules import RuleLayers
from kantan_agents.tools.mcp.failure_policy import policy_for
from kantan_agents.tools.rules_in_force import NO_LAYERS, rules_of_run

# Options of the run: even after a handoff they come from its first agent.
_RUN_OPTIONS = ("on_rule_violation", "pipeline", "runner")
_INHERITED = (
    "model",
    "model_provider_factory",
    "model_settings",
    "on_mcp_failure",
    "renderer",
    "metadata",
    "middleware",
    *_RUN_OPTIONS,
)


@attrs.frozen(eq=False)
class Parent:
    """An agent that delegates; ``standing`` are its rule layers below the explicit rules."""

    name: str
    agent: Any
    options: Mapping[str, Any]
    standing: RuleLayers
    run: Run | None
    context: Any

    def rules(self) -> RuleLayers:
        """Return the rules that apply to it now."""
        return rules_of_run(self.run, self.context, self.standing)


def parent_of(wrapper: Any, agent: Any = None) -> Parent:
    """Return the parent; ``agent`` is active if the context has none."""
    run = current_run.get()
    active = getattr(wrapper, "agent", None) or agent
    if active is None:
        active = run.agent.sdk_agent if run is not None else agents.Agent(name="agent")
    if issubclass(type(active), Agent):  # the SDK's own runner was given the Agent itself
        active = active.sdk_agent
    run_agent: Agent[Any] | None = run.agent if run is not None else None
    owner = active.owner if isinstance(active, SDKAgent) else None
    settings = owner or run_agent
    options = {**_inherited(settings), **_sdk_options(active, owner)}
    if run_agent is not None and owner is not run_agent:
        options |= {name: getattr(run_agent.given, name) for name in _RUN_OPTIONS}
        options["middleware"] = _combined_middleware(run_agent, owner)
    standing = settings.standing_rules if settings is not None else NO_LAYERS
    options["on_mcp_failure"] = policy_for(options.get("on_mcp_failure", "raise"), options["mcp_servers"])
    return Parent(active.name, active, options, standing, run, wrapper.context)


def _inherited(agent: Any) -> Mapping[str, Any]:
    if agent is None:
        return {}
    options = {name: getattr(agent.given, name) for name in _INHERITED}
    options["mcp_config"] = agent.given.sdk_agent_options.get("mcp_config")
    if agent._file is not None:
        options |= {"models": agent._file.models, "skills": agent._file.skills}
    return options


def _sdk_options(active: agents.Agent[Any], owner: Any) -> dict[str, Any]:
    options: dict[str, Any] = {"mcp_servers": list(active.mcp_servers)}
    options["tools"] = active.given_tools if isinstance(active, SDKAgent) else list(active.tools)
    if owner is None or active is not owner.sdk_agent:
        options["model"] = unobserved(active.model)
        options["model_settings"] = active.model_settings
        options["mcp_config"] = active.mcp_config
    return options


def _combined_middleware(run_agent: Agent[Any], owner: Any) -> list[Any]:
    middleware = run_agent.given.middleware
    inner = owner.given.middleware if owner is not None else ()
    return middleware + [one for one in inner if not any(one is known for known in middleware)]
