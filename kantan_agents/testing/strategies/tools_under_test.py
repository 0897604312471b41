"""Tools with their schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

import attrs
from agents import Tool
from hypothesis import strategies as st

from kantan_agents.agent import Agent
from kantan_agents.errors import InvalidOptionError
from kantan_agents.testing.scripted_model import ScriptedModel
from kantan_agents.testing.strategies.schemas import valid_values, validity
from kantan_agents.tool_rules import ToolFacts
from kantan_agents.tools.facts import facts_of

Tools: TypeAlias = Agent[Any] | Mapping[str, Mapping[str, Any]] | Iterable[Callable[..., Any] | Tool]
"""An agent, functions, tools of the SDK, or schemas by tool name."""


@attrs.frozen(eq=False)
class ToolUnderTest:
    """A tool and the strategy for its arguments."""

    facts: ToolFacts
    arguments: st.SearchStrategy[dict[str, Any]]
    is_valid: Callable[[Any], bool]

    @classmethod
    def of(cls, facts: ToolFacts) -> ToolUnderTest:
        """Read its schema."""
        schema = facts.schema or {}
        return cls(facts, valid_values({"type": "object", **schema}), validity(schema))

    @property
    def name(self) -> str:
        """The model's name for it."""
        return self.facts.names[0]

    @property
    def properties(self) -> Mapping[str, Any]:
        """The schemas of its parameters."""
        return (self.facts.schema or {}).get("properties") or {}

    @property
    def required(self) -> tuple[str, ...]:
        """Its required parameters."""
        return tuple((self.facts.schema or {}).get("required") or ())


def read_tools(tools: Tools) -> list[ToolUnderTest]:
    """E75 if none has a schema."""
    if isinstance(tools, Mapping):
        found = [ToolFacts((name,), _first_text(schema), schema) for name, schema in tools.items()]
    else:
        agent = (
            tools if isinstance(tools, Agent) else Agent("t", "", model=ScriptedModel(), tools=list(tools))
        )
        sdk_agent = agent.sdk_agent
        listed = [facts_of(tool) for tool in (*sdk_agent.held_tools, *sdk_agent.tools)]
        found = [facts for facts in listed if facts.schema is not None]
    if not found:
        reason = f"no tool with a schema of its arguments is in {tools!r}"
        raise InvalidOptionError(option="tools", reason=reason)
    return [ToolUnderTest.of(facts) for facts in found]


def _first_text(schema: Mapping[str, Any]) -> str | None:
    properties = schema.get("properties") or {}
    return next((name for name, inner in properties.items() if inner.get("type") == "string"), None)
