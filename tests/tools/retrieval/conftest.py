"""Agents with many tools, and models that call them, for the tests of retrieval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents import FunctionTool

from kantan_agents import Agent, ToolRetrieval
from kantan_agents.testing import ScriptedModel, assistant_message, function_call
from kantan_agents.tools.retrieval import ToolDocument, ToolMatch

FRUIT = ("apple", "pear", "plum", "cherry", "lemon", "fig", "quince", "melon")


def tool(name: str, description: str = "", **properties: Any) -> FunctionTool:
    """Return a tool that returns its name."""

    async def run(_context: Any, _arguments: str) -> str:
        return f"{name} done"

    schema = {"type": "object", "properties": properties, "required": [], "additionalProperties": False}
    return FunctionTool(name, description, schema, run, strict_json_schema=False)


def fruit_tools() -> list[FunctionTool]:
    """Return a tool for each kind of fruit."""
    return [tool(fruit, f"Peels a {fruit}.") for fruit in FRUIT]


def calling(*names: str | tuple[str, dict[str, Any]]) -> ScriptedModel:
    """Return a model that calls tools one after another and then gives a final answer."""
    steps = [(name, {}) if isinstance(name, str) else name for name in names]
    script = [[function_call(name, arguments, call_id=f"c{n}")] for n, (name, arguments) in enumerate(steps)]
    return ScriptedModel([*script, [assistant_message("done")]])


def finding(query: str) -> tuple[str, dict[str, Any]]:
    """Return a call of ``find_tools``."""
    return ("find_tools", {"query": query})


def fruit_agent(model: Any, *, tools: Sequence[Any] | None = None, **options: Any) -> Agent:
    """Return an agent that shows two of its tools for fruit."""
    given = fruit_tools() if tools is None else tools
    others = {name: options.pop(name) for name in list(options) if name in _AGENT_OPTIONS}
    return Agent(
        "peeler", "Peel.", tools=given, model=model, tool_retrieval=ToolRetrieval(2, **options), **others
    )


_AGENT_OPTIONS = (
    "on_rule_violation",
    "handoffs",
    "middleware",
    "runner",
    "name",
    "mcp_config",
    "mcp_servers",
    "model_settings",
)


def shown(model: ScriptedModel) -> list[list[str]]:
    """Return the names of the tools the model saw, call by call."""
    return [[each.name for each in call.tools] for call in model.calls]


def outputs(model: ScriptedModel) -> list[str]:
    """Return the results that the model got for its calls."""
    call = model.last_call
    assert call is not None
    return [str(item["output"]) for item in call.input if item.get("type", "").endswith("call_output")]


class Saying:
    """A retriever with fixed matches in order, or with matches from a function."""

    def __init__(self, found: Any) -> None:
        self.found = found
        self.indexed: list[Sequence[ToolDocument]] = []
        self.asked: list[tuple[str, int]] = []

    def index(self, documents: Sequence[ToolDocument]) -> Saying:
        self.indexed.append(documents)
        return self

    async def search(self, query: str, limit: int) -> Any:
        self.asked.append((query, limit))
        found = self.found() if callable(self.found) else self.found
        if isinstance(found, list) and all(isinstance(name, str) for name in found):
            return [ToolMatch(name, 1.0) for name in found][:limit]
        return found
