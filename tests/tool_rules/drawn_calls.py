"""Rules and calls of tools with schemas, so that parameter rules decide about many of them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kantan_agents.testing.properties import event
from kantan_agents.testing.strategies import tool_calls, tool_rules
from kantan_agents.tool_rules import Decision


def schema_of(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


SCHEMAS = {
    "search": schema_of(query={"type": "string"}, limit={"type": "integer"}),
    "Bash": schema_of(command={"type": "string"}),
    "fs.read": schema_of(ids={"type": "array", "items": {"type": "integer"}}, depth={"type": "integer"}),
}
about_parameters = tool_rules(tools=SCHEMAS).map(lambda rules: {**rules, "allow": None, "deny": None})
rules_of_all_kinds = tool_rules() | tool_rules(tools=SCHEMAS) | about_parameters


def calls_of_all_kinds(rules: Any) -> st.SearchStrategy[tuple[str, dict[str, Any]]]:
    return tool_calls(rules, tools=SCHEMAS, invalid=0.6) | tool_calls(rules)


def note(decision: Decision) -> None:
    """Count which part of the rules decided."""
    event("allowed" if decision.allowed else f"refused by {decision.key}")
