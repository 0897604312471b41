"""Recorded bodies of the Responses API survive a round trip through the protocol."""

from __future__ import annotations

import pytest

from kantan_agents import ContentSegment, ProviderResponse
from kantan_agents.errors import UntranslatableError
from kantan_agents.models.protocol import Message, ToolSpec
from kantan_agents.models.protocol.translate import (
    messages_from_openai_responses,
    messages_to_openai_responses,
    openai_chat,
    response_from_openai_responses,
    response_to_openai_responses,
    tools_from_openai_responses,
    tools_to_openai_responses,
)
from tests.models.protocol.scripted import text
from tests.models.protocol.test_translations import without_nulls
from tests.models.protocol.wire_server import recorded


def test_a_recorded_response_survives_a_round_trip() -> None:
    body = recorded("openai_responses")
    response = response_from_openai_responses(body)
    assert without_nulls(response_to_openai_responses(response)) == without_nulls(body)
    assert response.text == "As reported today.I cannot say more.And"
    assert response.metadata["finish_reason"] == "incomplete"
    assert response.metadata["usage"]["cached_tokens"] == 128
    refused = openai_chat.response_to_openai_chat(ProviderResponse([response.segments[1]]))
    assert refused["choices"][0]["message"]["refusal"] == "I cannot say more."


def test_a_recorded_request_survives_a_round_trip() -> None:
    body = recorded("openai_responses_request")
    messages = messages_from_openai_responses(body["input"])
    assert without_nulls(messages_to_openai_responses(messages)) == without_nulls(body["input"])
    assert [message.role for message in messages] == [
        *("system", "user", "assistant", "tool", "assistant", "user", "assistant")
    ]
    assert messages[-1].segments == ()
    tools = tools_from_openai_responses(body["tools"])
    assert tools_to_openai_responses(tools) == body["tools"]
    lax = [{"type": "function", "name": "f", "parameters": {}}]
    assert tools_to_openai_responses(tools_from_openai_responses(lax))[0]["strict"] is None


@pytest.mark.parametrize("name", ["chat_tool_calls", "chat_refusal"])
def test_a_chat_completion_can_be_written_as_a_response_object(name: str) -> None:
    answer = openai_chat.response_from_openai_chat(recorded(name))
    wire = response_to_openai_responses(answer)
    assert wire["status"] == answer.metadata["finish_reason"]
    kinds = [part["type"] for item in wire["output"] for part in item.get("content", [item])]
    assert kinds == (["refusal"] if name == "chat_refusal" else ["output_text", *["function_call"] * 2])


def test_data_of_other_formats_are_left_out_and_other_fields_are_losses() -> None:
    foreign = {"anthropic": {"fields": {"a": 1}}, "gemini": {"fields": {"b": 1}}}
    segment = ContentSegment("text", text="a", extra=foreign)
    conversation = [Message("user", [segment], extra=foreign), Message("tool", [segment], "1", extra=foreign)]
    assert messages_to_openai_responses(conversation) == messages_to_openai_responses(
        [Message("user", [text("a")]), Message("tool", [text("a")], "1")]
    )
    assert tools_to_openai_responses([ToolSpec("f", extra=foreign)]) == tools_to_openai_responses(
        [ToolSpec("f")]
    )
    with pytest.raises(UntranslatableError) as caught:
        messages_to_openai_responses(
            [Message("user", [segment], extra={"mood": 1}), Message("tool", [], "1", "f")]
        )
    assert [problem.partition(":")[0] for problem in caught.value.problems] == [
        "messages[0].mood",
        "messages[1].toolName",
    ]
