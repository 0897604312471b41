"""The tool whose arguments are the answer: how it is offered, and its call as the message it stands for."""

from __future__ import annotations

from typing import Any

from agents import FunctionTool, ModelResponse
from agents.models.fake_id import FAKE_RESPONSES_ID
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

_NAME = "final_answer"


def final_tool_name(tools: list[Any], handoffs: list[Any]) -> str:
    """Return a name for the final tool that no tool and no hand-off of the agent has."""
    taken = {getattr(tool, "name", None) for tool in tools}
    taken |= {getattr(handoff, "tool_name", None) for handoff in handoffs}
    name, number = _NAME, 1
    while name in taken:
        number += 1
        name = f"{_NAME}_{number}"
    return name


def final_tool(name: str, schema: dict[str, Any]) -> FunctionTool:
    """Return the tool whose parameters are the schema of the output."""
    return FunctionTool(
        name=name,
        description="Give the final answer. Call this once, when everything needed for the answer is known.",
        params_json_schema=schema,
        on_invoke_tool=_never,
        strict_json_schema=False,
    )


async def _never(_context: Any, _arguments: str) -> Any:
    # Its call becomes a message before anything could run it; whoever does all the same is told.
    raise RuntimeError("the final tool is how an answer is given; it cannot be run")


def is_final_call(item: Any, name: str) -> bool:
    """Whether an output item calls the final tool."""
    return isinstance(item, ResponseFunctionToolCall) and item.name == name


def message_of(call: Any) -> ResponseOutputMessage:
    """Return the message a call of the final tool stands for: its arguments are the text."""
    return text_message(call.arguments)


def text_message(text: str) -> ResponseOutputMessage:
    """Return an assistant's message that the provider has not written in this form.

    Its id is the SDK's for items without one: a provider would look for a message under the id of a call.
    """
    content = ResponseOutputText(type="output_text", text=text, annotations=[], logprobs=[])
    return ResponseOutputMessage(
        id=FAKE_RESPONSES_ID, type="message", role="assistant", status="completed", content=[content]
    )


def without_final_calls(answer: ModelResponse, name: str) -> ModelResponse:
    """Return an answer with the calls of the final tool as messages."""
    items = items_without_final_calls(answer.output, name)
    if items is answer.output:
        return answer
    return ModelResponse(items, answer.usage, answer.response_id, answer.request_id)


def items_without_final_calls(items: list[Any], name: str) -> list[Any]:
    """Return output items with the calls of the final tool as messages.

    They come last, because the SDK takes the last message for the answer; what the model wrote beside the
    call is not it. Reasoning that led to such a call alone goes: a provider takes none without what it led
    to.
    """
    final = [message_of(item) for item in items if is_final_call(item, name)]
    if not final:
        return items
    others: list[Any] = []
    leads_to_others = False
    for item in reversed(items):
        if is_final_call(item, name):
            leads_to_others = False
        elif leads_to_others or getattr(item, "type", None) != "reasoning":
            leads_to_others = True
            others.insert(0, item)
    return [*others, *final]
