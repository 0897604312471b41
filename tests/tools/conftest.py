"""Tools that record their executions, and models that call them, for the tests of guards."""

from __future__ import annotations

from typing import Any

import agents
import pytest
from agents import FunctionTool

from kantan_agents.testing import ScriptedModel, assistant_message, function_call


class Executed(list[tuple[str, Any]]):
    """The executed calls, and tools that record their calls here."""

    def tool(self, name: str, **options: Any) -> FunctionTool:
        """Return a function tool with one text parameter."""

        async def run(value: str = "") -> str:
            """Do it."""
            self.append((name, value))
            return f"{name} did {value}"

        made = agents.function_tool(run, name_override=name)
        for option, setting in options.items():
            setattr(made, option, setting)
        return made


@pytest.fixture
def executed() -> Executed:
    return Executed()


def calls(*steps: Any, then: str = "done") -> ScriptedModel:
    """Return a model that makes calls, each a pair of name and arguments, and then a final answer."""
    script = [[function_call(name, arguments, call_id=f"c{n}")] for n, (name, arguments) in enumerate(steps)]
    return ScriptedModel([*script, [assistant_message(then)]])


def outputs(model: ScriptedModel) -> list[str]:
    """Return the results that the model got for its calls."""
    call = model.last_call
    assert call is not None
    return [str(item["output"]) for item in call.input if item.get("type", "").endswith("call_output")]


def shown(model: ScriptedModel, call: int = 0) -> list[str]:
    """Return the names of the tools the model saw."""
    return [tool.name for tool in model.calls[call].tools]
