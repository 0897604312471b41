"""Runs of an agent over the native APIs of Anthropic and Google."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from agents import function_tool
from pydantic import BaseModel

from kantan_agents import Agent, AnthropicProvider, GeminiProvider, get_context_with_tool_rules, record_traces
from kantan_agents.core.events import TextDelta
from kantan_agents.errors import ProviderRequestError, UntranslatableError
from kantan_agents.middleware import Fallback, Retry
from tests.models.protocol.wire_server import Body, WireServer, recorded

Make = Callable[[str], Any]


def claude(url: str) -> AnthropicProvider:
    return AnthropicProvider("claude-sonnet-4-5", api_key="k", base_url=url)


def gemini(url: str) -> GeminiProvider:
    return GeminiProvider("gemini-3-flash", api_key="k", base_url=url)


BOTH = pytest.mark.parametrize("make", [claude, gemini])


@function_tool
def get_weather(city: str) -> str:
    """Tell the weather."""
    return f"Sunny in {city}."


def text_body(make: Make, text: str) -> dict[str, Any]:
    """Return the body of a response with one text."""
    if make is claude:
        return {**recorded("anthropic_citations"), "content": [{"type": "text", "text": text}]}
    content = {"role": "model", "parts": [{"text": text}]}
    return {
        **recorded("gemini_image"),
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
    }


def tool_call_body(make: Make) -> dict[str, Any]:
    """Return the body of a response with thinking, text and a call for the weather in Paris."""
    if make is claude:
        body: dict[str, Any] = recorded("anthropic_tool_use")
        body["content"][-1]["input"] = {"city": "Paris"}
        return body
    body = recorded("gemini_function_calls")
    del body["candidates"][0]["content"]["parts"][3]
    return body


def stream_of(make: Make, body: dict[str, Any]) -> Body:
    """Return a response as a stream of events."""
    if make is gemini:
        return Body(events=[body])
    events: list[Any] = [{"type": "message_start", "message": {**body, "content": []}}]
    for index, block in enumerate(body["content"]):
        whole = (
            {**block, "input": {}}
            if block["type"] == "tool_use"
            else {**block, "text": ""}
            if "text" in block
            else block
        )
        events.append({"type": "content_block_start", "index": index, "content_block": whole})
        delta = {"type": "text_delta", "text": block.get("text")}
        if block["type"] == "tool_use":
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        if block["type"] in ("text", "tool_use"):
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    end = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    return Body(
        events=[*events, {"type": "message_delta", "delta": end, "usage": {}}, {"type": "message_stop"}]
    )


@BOTH
@pytest.mark.parametrize("is_streamed", [False, True])
async def test_an_agent_runs_tools_and_thinking_is_sent_back(make: Make, is_streamed: bool) -> None:
    answers: list[Any] = [tool_call_body(make), text_body(make, "Sunny."), text_body(make, "Bye.")]
    if is_streamed:
        answers = [stream_of(make, body) for body in answers]
    deltas = []
    with WireServer(answers) as server:
        async with make(server.url) as provider:
            agent = Agent("weather", "Be brief.", model=provider, tools=[get_weather])
            context: dict[str, Any] = {}
            for words in ("Weather in Paris?", "Thanks."):
                before = context["result"].to_input_list() if context.get("result") else []
                question = [*before, {"role": "user", "content": words}]
                if is_streamed:
                    async with agent.stream(question, context) as run:
                        async for event in run:
                            if isinstance(event, TextDelta):
                                deltas.append(event.text)
                else:
                    await agent.run_async(question, context)
    assert context["result"].final_output == "Bye."
    assert not is_streamed or deltas[-2:] == ["Sunny.", "Bye."]
    second = server.requests[1][1]
    if make is claude:
        assert second["messages"][1] == {"role": "assistant", "content": tool_call_body(make)["content"]}
        assert second["messages"][2]["content"] == [
            {
                "type": "tool_result",
                "tool_use_id": "toolu_01A09q90qw90lq917835lq9",
                "content": "Sunny in Paris.",
            }
        ]
        assert second["tools"][0]["name"] == "get_weather"
        assert len(server.requests[2][1]["messages"]) == 5
    else:
        content = tool_call_body(make)["candidates"][0]["content"]
        assert second["contents"][1] == {"role": "model", "parts": content["parts"]}
        assert second["contents"][2]["parts"] == [
            {
                "functionResponse": {
                    "id": "p1k4qgXs",
                    "name": "get_weather",
                    "response": {"result": "Sunny in Paris."},
                }
            }
        ]
        assert len(server.requests[2][1]["contents"]) == 5


@BOTH
async def test_tool_rules_apply_over_a_native_api(make: Make) -> None:
    context = get_context_with_tool_rules({"deny": ["get_weather"]})
    with WireServer([tool_call_body(make), text_body(make, "I may not.")]) as server:
        async with make(server.url) as provider:
            agent = Agent("weather", "Be brief.", model=provider, tools=[get_weather])
            await agent.run_async("Weather in Paris?", context)
    assert context["result"].final_output == "I may not."
    assert "tools" not in server.requests[0][1]
    assert "Sunny" not in str(server.requests[1][1])


@BOTH
async def test_an_image_is_sent_to_the_api(make: Make) -> None:
    content = [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"},
    ]
    with WireServer([text_body(make, "A dot.")]) as server:
        async with make(server.url) as provider:
            agent = Agent("eye", "Look.", model=provider)
            context = await agent.run_async([{"role": "user", "content": content}], {})
    assert context["result"].final_output == "A dot."
    body = server.requests[0][1]
    part = body["messages"][0]["content"][1] if make is claude else body["contents"][0]["parts"][1]
    assert "iVBORw0KGgo=" in str(part)


class Answer(BaseModel):
    n: int


@BOTH
async def test_a_structured_output_is_returned(make: Make) -> None:
    with WireServer([text_body(make, '{"n": 3}')]) as server:
        async with make(server.url) as provider:
            agent = Agent("count", "Count.", model=provider, output_type=Answer, output_dest="answer")
            context = await agent.run_async("How many?", {})
    assert context["answer"] == {"n": 3}
    body = server.requests[0][1]
    assert "output_config" in body or "responseJsonSchema" in body["generationConfig"]


class Tagged(BaseModel):
    tags: dict[str, str] = {}


class Tree(BaseModel):
    kids: list[Tree] = []


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("output_type", [Tagged, Tree, dict])
async def test_a_schema_that_claude_does_not_support_is_requested_in_another_form(
    output_type: Any, is_streamed: bool
) -> None:
    answer = text_body(claude, '{"tags": {"a": "b"}}' if output_type is not Tree else '{"kids": [{}]}')
    with WireServer([stream_of(claude, answer) if is_streamed else answer]) as server:
        async with claude(server.url) as provider:
            agent = Agent("tag", "Tag.", model=provider, output_type=output_type, output_dest="answer")
            context: dict[str, Any] = {}
            if is_streamed:
                async with agent.stream("Which?", context) as run:
                    _ = [event async for event in run]
            else:
                await agent.run_async("Which?", context)
    expected: Any = {"kids": [{"kids": []}]} if output_type is Tree else {"tags": {"a": "b"}}
    assert context["answer"] == expected
    assert len(server.requests) == 1
    assert "output_config" not in server.requests[0][1]


async def test_content_that_cannot_be_translated_raises_at_once() -> None:
    sound = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    async with claude("http://127.0.0.1:9") as provider:
        agent = Agent("ear", "Hear.", model=provider, output_type=Answer)
        with pytest.raises(UntranslatableError, match="cannot hold audio"):
            await agent.run_async([{"role": "user", "content": [sound]}], {})


@BOTH
async def test_retry_repeats_a_request_to_a_busy_api_but_not_a_rejected_one(make: Make) -> None:
    busy = Body({"error": {"message": "busy"}}, status=529, headers={"retry-after": "0"})
    refused = Body({"error": {"message": "no"}}, status=400)
    with WireServer([busy, Body(breaks=True), text_body(make, "Here."), refused]) as server:
        async with make(server.url) as provider:
            agent = Agent("a", "b", model=provider, middleware=[Retry(3, initial_delay=0.001)])
            context = await agent.run_async("hi", {})
            assert context["result"].final_output == "Here."
            with pytest.raises(ProviderRequestError, match="HTTP 400: no"):
                await agent.run_async("hi", {})
    assert len(server.requests) == 4


@BOTH
async def test_a_request_is_not_repeated_if_the_server_demands_a_long_wait(make: Make) -> None:
    busy = Body({"error": {"message": "busy"}}, status=429, headers={"retry-after": "3600"})
    with WireServer([busy]) as server:
        async with make(server.url) as provider:
            agent = Agent("a", "b", model=provider, middleware=[Retry(3)])
            with pytest.raises(ProviderRequestError, match="busy") as caught:
                await agent.run_async("hi", {})
    assert caught.value.retry_after == 3600


@BOTH
async def test_the_trace_has_the_tokens_but_not_the_key(make: Make, tmp_path: Any) -> None:
    database = tmp_path / "traces.sqlite3"
    provider = (
        AnthropicProvider("claude-x", api_key="sk-secret", base_url="http://127.0.0.1:1")
        if make is claude
        else GeminiProvider("gemini-x", api_key="sk-secret", base_url="http://127.0.0.1:1")
    )
    recorder = record_traces(database)
    try:
        with WireServer([text_body(make, "Hi.")]) as server:
            provider._api.base_url = server.url
            async with provider:
                context = await Agent("a", "b", model=provider).run_async("hi", {})
        recorder.force_flush()
        assert b"sk-secret" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert b"Hi." in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    finally:
        recorder.shutdown()
    assert context["result"].context_wrapper.usage.input_tokens == (12 if make is claude else 9)


@BOTH
async def test_fallback_calls_another_model_if_an_api_fails_or_is_unreadable(make: Make) -> None:
    other = gemini if make is claude else claude
    refused = Body({"error": {"message": "no credit"}}, status=400)
    with WireServer(
        [refused, text_body(other, "Here."), Body(raw=b"<html>"), text_body(other, "There.")]
    ) as server:
        async with make(server.url) as first, other(server.url) as second:
            agent = Agent("a", "b", model=first, middleware=[Fallback(second)])
            answers = [(await agent.run_async("hi", {}))["result"].final_output for _ in range(2)]
    assert answers == ["Here.", "There."]


async def test_a_conversation_is_handed_off_from_one_api_to_the_other() -> None:
    call = {"type": "tool_use", "id": "toolu_9", "name": "transfer_to_critic", "input": {}}
    handoff = {**recorded("anthropic_citations"), "content": [call], "stop_reason": "tool_use"}
    with WireServer([handoff, text_body(gemini, "Judged.")]) as server:
        async with claude(server.url) as one, gemini(server.url) as other:
            critic = Agent("critic", "Judge.", model=other)
            writer = Agent("writer", "Write.", model=one, handoffs=[critic])
            context = await writer.run_async("Write something.", {})
    assert context["result"].final_output == "Judged."
    contents = server.requests[1][1]["contents"]
    assert contents[1]["parts"][0]["thoughtSignature"] == "skip_thought_signature_validator"
    assert contents[2]["parts"][0]["functionResponse"]["id"] == "toolu_9"
