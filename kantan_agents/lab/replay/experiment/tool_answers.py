"""Answers tool calls with recorded calls or an agent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from kantan_agents.agent import Agent
from kantan_agents.agent.own_calls import limited
from kantan_agents.core.interception import ToolCall
from kantan_agents.errors import InvalidOptionError
from kantan_agents.lab.replay.answers_from_recording import plain_arguments, was_made
from kantan_agents.models.structured import json_data
from kantan_agents.support.secrets import mask
from kantan_agents.traces.capture import RunRecord, ToolCallRecord

_MOST_EXAMPLES: Final = 5


class ToolPool:
    """The recorded calls of a run and of the runs inside it.

    Equal calls are used in their order; then the last one answers again.
    """

    def __init__(self, runs: Iterable[RunRecord]) -> None:
        self._calls = [call for run in runs for call in run.tool_calls if was_made(call)]
        self._used: list[ToolCallRecord] = []

    def has(self, call: ToolCall) -> bool:
        """Return whether a recorded call answers this one."""
        return any(_has_result(one) for one in self._equal(call))

    def take(self, call: ToolCall) -> ToolCallRecord | None:
        """Return the recorded call that answers this one; None if missing."""
        equal = [one for one in self._equal(call) if _has_result(one)]
        if not equal:
            return None
        chosen = next((one for one in equal if not self._is_used(one)), equal[-1])
        self._used.append(chosen)
        return chosen

    def rejected(self, call: ToolCall) -> ToolCallRecord | None:
        """Return an equal rejected call; None if missing."""
        rejected = [one for one in self._equal(call) if one.decision is None and one.error is None]
        chosen = next((one for one in rejected if not self._is_used(one)), None)
        if chosen is not None:
            self._used.append(chosen)
        return chosen

    def examples(self, name: str) -> list[ToolCallRecord]:
        """Return the recorded calls of a tool with a result."""
        return [
            one for one in self._calls if one.tool.name == name and _has_result(one) and one.failure is None
        ]

    def _equal(self, call: ToolCall) -> list[ToolCallRecord]:
        written = getattr(call.tool_context, "tool_arguments", None)
        arguments = plain_arguments(mask(written if isinstance(written, str) else call.arguments))
        return [
            one
            for one in self._calls
            if one.agent == call.agent
            and (one.tool.name == call.name or call.name in one.tool.names)
            and plain_arguments(one.arguments) == arguments
        ]

    def _is_used(self, call: ToolCallRecord) -> bool:
        return any(call is one for one in self._used)


def _has_result(call: ToolCallRecord) -> bool:
    if call.decision is None or not call.decision.is_allowed:
        return False
    if call.failure is not None:
        return call.failure.type != "CancelledError"
    return call.error is None


def checked_simulator(agent: Any) -> Agent[Any] | None:
    """Return the agent that plays tools, with limits; raise E75 if it has tools."""
    if agent is None:
        return None
    if not isinstance(agent, Agent):
        raise InvalidOptionError(option="simulate", reason=f"must be an Agent, not {type(agent).__name__}")
    if agent.tools or agent.handoffs or agent.sdk_agent.mcp_servers:
        raise InvalidOptionError(option="simulate", reason="must be an agent without tools and hand-offs")
    return limited(agent)


async def result_of_simulation(agent: Agent[Any], call: ToolCall, examples: Sequence[ToolCallRecord]) -> str:
    """Return an agent's made-up result."""
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
