"""Reasoning and the arguments of tools are events while the model writes them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from agents import Agent as SDKAgent
from agents import Runner
from kantan_llm import AsyncClientBundle
from openai import AsyncOpenAI

from kantan_agents import Agent, ProviderModel
from kantan_agents.core.events import ReasoningDelta, TextDelta, ToolArgumentsDelta, ToolCallStarted
from kantan_agents.errors import AgentPainException
from kantan_agents.middleware import Redact
from kantan_agents.models.protocol import ArgumentsPiece, ProviderContext, ReasoningPiece
from kantan_agents.testing import OfflineServer, ScriptedToolCall
from tests.models.protocol.scripted import Scripted, call, text
from tests.models.protocol.test_anthropic_gemini_agents import (
    claude,
    gemini,
    get_weather,
    stream_of,
    text_body,
)
from tests.models.protocol.test_http_providers import NOTHING
from tests.models.protocol.wire_server import Body, WireServer, recorded


def shown(events: list[Any]) -> list[tuple[str, ...]]:
    """Return the pieces in order, and the calls."""
    found: list[tuple[str, ...]] = []
    for event in events:
        if isinstance(event, ReasoningDelta):
            found.append(("reasoning", event.text))
        elif isinstance(event, TextDelta):
            found.append(("text", event.text))
        elif isinstance(event, ToolArgumentsDelta):
            found.append(("arguments", event.call_id, event.tool, event.arguments))
        elif isinstance(event, ToolCallStarted):
            found.append(("call", event.call_id, event.tool, event.arguments))
    return found


async def events_of(agent: Agent[Any], question: str = "Weather in Paris?") -> list[Any]:
    async with agent.stream(question, {}) as run:
        return [event async for event in run]


async def test_claude_streams_its_thinking_and_its_arguments() -> None:
    answers = [Body(events=recorded("anthropic_stream")), stream_of(claude, text_body(claude, "Sunny."))]
    with WireServer(answers) as server:
        async with claude(server.url) as provider:
            found = shown(await events_of(Agent("a", "b", model=provider, tools=[get_weather])))
    assert [one for one in found if one[0] == "reasoning"]
    assert "".join(one[1] for one in found if one[0] == "reasoning") == "The weather in Paris."
    (started,) = [one for one in found if one[0] == "call"]
    pieces = [one for one in found if one[0] == "arguments"]
    assert len(pieces) > 1
    assert {piece[1:3] for piece in pieces} == {started[1:3]}
    assert json.loads("".join(piece[3] for piece in pieces)) == json.loads(started[3]) == {"city": "Paris"}
    assert found.index(pieces[-1]) < found.index(started)


async def test_gemini_streams_its_thoughts_and_whole_arguments() -> None:
    with WireServer(
        [Body(events=recorded("gemini_stream")), Body(events=[text_body(gemini, "Ok.")])]
    ) as server:
        async with gemini(server.url) as provider:
            found = shown(await events_of(Agent("a", "b", model=provider, tools=[get_weather])))
    assert ("reasoning", "Weighing") in found
    (started,) = [one for one in found if one[0] == "call"]
    (piece,) = [one for one in found if one[0] == "arguments"]
    assert piece[1:] == started[1:]


@pytest.mark.parametrize("api", ["responses", "chat"])
async def test_openai_models_stream_their_arguments(api: Any) -> None:
    asks = ScriptedToolCall("get_weather", {"city": "Paris"})
    with OfflineServer([asks, "Sunny."]) as server:
        agent = Agent("a", "b", model=server.bundle(api=api), tools=[get_weather])
        found = shown(await events_of(agent))
    (started,) = [one for one in found if one[0] == "call"]
    pieces = [one for one in found if one[0] == "arguments"]
    assert {piece[1:3] for piece in pieces} == {started[1:3]}
    assert "".join(piece[3] for piece in pieces) == started[3]
    assert found[-1] == ("text", "Sunny.")


async def test_reasoning_over_chat_completions_is_streamed() -> None:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    deltas = [{"reasoning_content": "I think."}, {"content": "Sunny."}]
    events = [{**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    end = {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    with WireServer([Body(events=[*events, end, "[DONE]"])]) as server:
        async with AsyncOpenAI(api_key="k", base_url=server.url) as client:
            bundle = AsyncClientBundle(client, "m", "compat", server.url)
            found = shown(await events_of(Agent("a", "b", model=bundle)))
    assert found == [("reasoning", "I think."), ("text", "Sunny.")]


class Thinking(Scripted):
    """Streams reasoning, arguments and text, in an order that no API has."""

    wanted: bool | None = None

    async def stream(self, prompt: str, context: ProviderContext) -> AsyncIterator[Any]:
        self.wanted = context.wants_pieces
        response = await self.generate(prompt, context)
        yield ReasoningPiece("I think ")
        yield ReasoningPiece("of ann@example.com")
        for segment in response.segments:
            if segment.tool_call is not None:
                whole = json.dumps(segment.tool_call.args)
                yield ArgumentsPiece(segment.tool_call.id, segment.tool_call.name, whole[:5])
                yield ArgumentsPiece(segment.tool_call.id, segment.tool_call.name, whole[5:])
            yield segment


def answers() -> list[Any]:
    paris, rome = (call("get_weather", {"city": city}, city) for city in ("paris", "ann@example.com"))
    return [[paris, text("Between. "), rome], text("Done.")]


async def test_pieces_of_a_custom_provider_are_events_and_the_answer_is_unchanged() -> None:
    provider = Thinking(*answers())
    found = shown(await events_of(Agent("a", "b", model=provider, tools=[get_weather])))
    assert provider.wanted is True
    assert found[:7] == [
        ("reasoning", "I think "),
        ("reasoning", "of ann@example.com"),
        ("arguments", "paris", "get_weather", '{"cit'),
        ("arguments", "paris", "get_weather", 'y": "paris"}'),
        ("text", "Between. "),
        ("arguments", "ann@example.com", "get_weather", '{"cit'),
        ("arguments", "ann@example.com", "get_weather", 'y": "ann@example.com"}'),
    ]
    calls = [one for one in found if one[0] == "call"]
    assert [(one[1], json.loads(one[3])["city"]) for one in calls] == [
        ("paris", "paris"),
        ("ann@example.com", "ann@example.com"),
    ]


async def test_raw_events_of_the_sdk_have_one_begin_and_one_end_for_each_call() -> None:
    provider = Thinking(*answers())
    agent = SDKAgent("a", model=ProviderModel(provider), tools=[get_weather])
    run = Runner.run_streamed(agent, "hi")
    raw = [event.data async for event in run.stream_events() if event.type == "raw_response_event"]
    for kind in ("response.output_item.added", "response.output_item.done"):
        items = [event.item for event in raw if event.type == kind and event.item.type == "function_call"]
        assert [item.call_id for item in items] == ["paris", "ann@example.com"]
    places = {
        event.output_index
        for event in raw
        if event.type == "response.output_item.done" and event.item.type == "function_call"
    }
    assert len(places) == 2
    assert 0 not in places


async def test_a_call_id_that_was_used_before_is_replaced_in_its_pieces_too() -> None:
    first, second = call("get_weather", {"city": "a"}, "same"), call("get_weather", {"city": "b"}, "same")
    provider = Thinking([first], [second], text("Done."))
    found = shown(await events_of(Agent("a", "b", model=provider, tools=[get_weather])))
    started = [one[1] for one in found if one[0] == "call"]
    assert len(set(started)) == 2
    assert list(dict.fromkeys(one[1] for one in found if one[0] == "arguments")) == started


async def test_redact_lets_no_piece_pass() -> None:
    provider = Thinking(*answers())
    agent = Agent("a", "b", model=provider, tools=[get_weather], middleware=[Redact()])
    events = await events_of(agent)
    assert not [event for event in events if isinstance(event, (ReasoningDelta, ToolArgumentsDelta))]
    assert "ann@example.com" not in "".join(str(one) for one in shown(events) if one[0] == "text")


async def test_a_run_that_is_not_streamed_wants_no_pieces() -> None:
    provider = Scripted(text("Done."))
    await Agent("a", "b", model=provider).run_async("hi", {})
    assert provider.contexts[0].wants_pieces is False


async def test_a_provider_that_is_called_directly_yields_segments_only() -> None:
    with WireServer([Body(events=recorded("anthropic_stream"))]) as server:
        async with claude(server.url) as provider:
            pieces = [piece async for piece in provider.stream("hi", NOTHING)]
    assert not [piece for piece in pieces if isinstance(piece, (ReasoningPiece, ArgumentsPiece))]


async def test_a_piece_without_text_is_e51() -> None:
    class Wrong(Scripted):
        async def stream(self, prompt: str, context: ProviderContext) -> AsyncIterator[Any]:
            yield ReasoningPiece(3)

    with pytest.raises(AgentPainException, match="ReasoningPiece"):
        await events_of(Agent("a", "b", model=Wrong()))
