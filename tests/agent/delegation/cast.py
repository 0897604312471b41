"""A scripted model that plays several agents, and the agents it plays; shared by the delegation tests."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable
from typing import Any

from agents import Model, ModelResponse

from kantan_agents import Agent, AgentDefinition, task_tool
from kantan_agents.testing import ModelStep, ScriptedModel, assistant_message, function_call


class Cast(Model):
    """A model for several agents. It recognizes each by its instructions and follows that agent's script."""

    def __init__(self, **scripts: Iterable[Any]) -> None:
        self.parts = {name: ScriptedModel(steps) for name, steps in scripts.items()}

    def _part(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ScriptedModel:
        instructions = args[0] if args else kwargs["system_instructions"]
        found = re.search(r"You are (\w+)", instructions)
        assert found is not None, instructions
        return self.parts[found[1]]

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        return await self._part(args, kwargs).get_response(*args, **kwargs)

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        async for event in self._part(args, kwargs).stream_response(*args, **kwargs):
            yield event

    def visible_tools(self, name: str, call: int = 0) -> list[str]:
        """Return the names of the tools offered to an agent."""
        return [tool.name for tool in self.parts[name].calls[call].tools]

    def results(self, name: str) -> list[str]:
        """Return the tool results in the last model call of an agent."""
        call = self.parts[name].last_call
        assert call is not None
        return [str(item["output"]) for item in call.input if item.get("type") == "function_call_output"]


def say(text: str) -> list[Any]:
    return [assistant_message(text)]


def use(tool: str, call_id: str = "t1", **arguments: Any) -> list[Any]:
    return [function_call(tool, arguments, call_id=call_id)]


def delegate(agent: str, prompt: str = "Do it.", call_id: str = "d1", tool: str = "Task") -> list[Any]:
    arguments = {"description": "some work", "prompt": prompt, "subagent_type": agent}
    return [function_call(tool, arguments, call_id=call_id)]


def failing(error: Exception) -> ModelStep:
    return ModelStep.raise_error(error)


def definition(name: str, **fields: Any) -> AgentDefinition:
    return AgentDefinition(name=name, description=f"does {name}", system_prompt=f"You are {name}.", **fields)


def read(path: str) -> str:
    """Read a file."""
    return f"text of {path}"


def write(path: str) -> str:
    """Write a file."""
    return f"{path} written"


def bash(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


def boss(cast: Cast, *agents: AgentDefinition, task: dict[str, Any] | None = None, **options: Any) -> Agent:
    """Return an agent with three tools that may delegate to ``agents``."""
    tools = [read, write, bash, task_tool(agents, **(task or {}))]
    return Agent("boss", "You are boss.", model=cast, tools=tools, **options)
