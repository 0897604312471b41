"""The options that an ``Agent`` was created with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import agents
import attrs

from kantan_agents.agent.options import (
    check_options,
    checked_flag,
    checked_history,
    checked_items,
    checked_metadata,
    checked_output_dest,
    checked_pipeline,
)
from kantan_agents.core.pipeline import Pipeline
from kantan_agents.tools.guards.violations import RuleViolationPolicy, checked_policy
from kantan_agents.tools.mcp.failure_policy import MCPFailurePolicy, checked_mcp_failure


@attrs.frozen(eq=False, slots=False, kw_only=True)  # so that `vars` lists its options
class AgentOptions:
    """The options of an ``Agent``, which documents them and has the defaults."""

    name: str
    instructions: Any
    model: Any
    model_provider_factory: Callable[[], Any] | None
    model_settings: agents.ModelSettings | None
    tools: list[Any]
    handoffs: list[Any]
    mcp_servers: list[Any]
    tool_providers: Any
    tool_retrieval: Any
    on_rule_violation: RuleViolationPolicy
    on_mcp_failure: MCPFailurePolicy
    strict: bool
    renderer: Any
    allow_env: bool
    metadata: Any
    output_type: Any
    output_mode: Any
    output_repairs: int
    output_dest: str | None
    history: int
    middleware: list[Any]
    pipeline: Pipeline | None
    runner: Any
    sdk_agent_options: Mapping[str, Any]

    @classmethod
    def checked(cls, options: dict[str, Any]) -> AgentOptions:
        """Return options, checked as far as possible alone: E71, E73, E75."""
        for option in ("allow_env", "strict"):
            options[option] = checked_flag(option, options[option])
        for option in ("handoffs", "mcp_servers", "tools", "middleware"):
            options[option] = checked_items(option, options[option])
        options["metadata"] = checked_metadata(options["metadata"])
        options["output_dest"] = checked_output_dest(options["output_dest"])
        options["history"] = checked_history(options["history"])
        options["on_rule_violation"] = checked_policy(options["on_rule_violation"])
        options["on_mcp_failure"] = checked_mcp_failure(options["on_mcp_failure"], options["mcp_servers"])
        options["pipeline"] = checked_pipeline(options["pipeline"])
        return cls(**options)

    def changed(self, **changes: Any) -> AgentOptions:
        """Return a copy with changes; E75 for an unknown name."""
        check_options(changes, OPTION_NAMES)
        own = {name: changes.pop(name) for name in _OWN_NAMES & changes.keys()}
        return self.checked({**vars(self), **own, "sdk_agent_options": {**self.sdk_agent_options, **changes}})

    def by_name(self) -> dict[str, Any]:
        """Return all options by name."""
        return {**vars(self), **self.sdk_agent_options}


_OWN_NAMES = frozenset(attrs.fields_dict(AgentOptions)) - {"sdk_agent_options"}

OPTION_NAMES = _OWN_NAMES | agents.Agent.__dataclass_fields__.keys()
