"""The SDK's ``RunResult`` of a slash command."""

from __future__ import annotations

import uuid
from typing import Any

from agents import (
    ItemHelpers,
    MessageOutputItem,
    RunContextWrapper,
    RunResult,
    ToolCallItem,
    ToolCallOutputItem,
)
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from kantan_agents.agent.bridge import SDKAgent
from kantan_agents.middleware.slash_commands.calls import Outcome
from kantan_agents.tools.output_text import tool_output_text
from kantan_agents.tools.server_names import server_of


def tool_result(text: str, outcome: Outcome, agent: SDKAgent, wrapper: RunContextWrapper[Any]) -> RunResult:
    """The call and its output are items."""
    output_item = ItemHelpers.tool_call_output_item(outcome.call, outcome.output)
    items = [
        ToolCallItem(agent=agent, raw_item=outcome.call),
        ToolCallOutputItem(agent=agent, raw_item=output_item, output=outcome.output),
    ]
    answer = tool_output_text(outcome.output, from_server=server_of(outcome.tool) is not None)
    return _result(text, items, answer, agent, wrapper, outcome)


def message_result(text: str, answer: str, agent: SDKAgent, wrapper: RunContextWrapper[Any]) -> RunResult:
    """A single message, as for ``/help``."""
    message = ResponseOutputMessage(
        id=f"msg_{uuid.uuid4().hex}",
        content=[ResponseOutputText(text=answer, type="output_text", annotations=[])],
        role="assistant",
        status="completed",
        type="message",
    )
    return _result(text, [MessageOutputItem(agent=agent, raw_item=message)], answer, agent, wrapper, None)


def _result(
    text: str,
    items: list[Any],
    answer: str,
    agent: SDKAgent,
    wrapper: RunContextWrapper[Any],
    outcome: Outcome | None,
) -> RunResult:
    return RunResult(
        input=text,
        new_items=items,
        raw_responses=[],
        final_output=answer,
        input_guardrail_results=[],
        output_guardrail_results=[],
        tool_input_guardrail_results=outcome.input_results if outcome is not None else [],
        tool_output_guardrail_results=outcome.output_results if outcome is not None else [],
        context_wrapper=wrapper,
        _last_agent=agent,
    )
