"""Lets an agent play a tool: what it answers is the result of the call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from kantan_agents.agent import Agent
from kantan_agents.core.interception import ToolCall
from kantan_agents.errors import InvalidOptionError
from kantan_agents.models.structured import json_data
from kantan_agents.traces.capture import ToolCallRecord

_MOST_EXAMPLES: Final = 5


def check_simulator(agent: Any) -> None:
    """Check that an agent can play tools: it must not be able to do anything itself.

    Raises:
        InvalidOptionError: E75, it is not an agent, or has tools.
    """
    if agent is None:
        return
    if not isinstance(agent, Agent):
        raise InvalidOptionError(option="simulate", reason=f"must be an Agent, not {type(agent).__name__}")
    if agent.tools or agent.handoffs or agent.sdk_agent.mcp_servers:
        raise InvalidOptionError(option="simulate", reason="must be an agent without tools and hand-offs")


async def result_of_simulation(agent: Agent[Any], call: ToolCall, examples: Sequence[ToolCallRecord]) -> str:
    """Return what an agent makes up as the result of a call.

    The agent's input is JSON: the tool's name, description and parameters, the arguments of the call, and
    recorded calls of the same tool with their results.
    """
    question = {
        "tool": call.name,
        "description": getattr(call.tool, "description", ""),
        "parameters": getattr(call.tool, "params_json_schema", None),
        "arguments": call.arguments,
        "examples": [{"arguments": one.arguments, "result": one.result} for one in examples[:_MOST_EXAMPLES]],
    }
    context: Any = await agent.run_async(json.dumps(question, ensure_ascii=False, default=str))
    output = json_data(context["result"].final_output)
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
