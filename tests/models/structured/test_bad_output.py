"""Replies that are not answers: refused schemas, refusals, tool calls, truncated replies."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agents import MaxTurnsExceeded, ModelRefusalError
from pydantic import BaseModel

from kantan_agents import Agent
from kantan_agents.errors import StructuredOutputError
from kantan_agents.models.structured.requests.final_tool import final_tool
from kantan_agents.testing import OfflineServer, RecordedRequest, Reply, ScriptedToolCall
from tests.models.structured.invoices import DATA, TEXT, invoice_agent


def look(word: str) -> str:
    """Look something up."""
    return f"found {word}"


async def test_a_refused_schema_is_requested_in_another_form() -> None:
    refused = Reply("Invalid schema for response_format 'Invoice': too deep.", status=400)

    def reply(request: RecordedRequest) -> Any:
        return refused if "response_format" in request.body else ScriptedToolCall("final_answer", DATA)

    with OfflineServer(reply) as server:
        context = await invoice_agent(server.bundle(api="chat")).run_async("Read it")
    assert context["invoice"] == DATA


async def test_a_refused_schema_without_another_form_is_an_error() -> None:
    refused = Reply("Invalid schema for response_format 'Invoice': too deep.", status=400)
    with (
        OfflineServer(lambda _request: refused) as server,
        pytest.raises(StructuredOutputError, match=r"native: refused by the provider.*too deep"),
    ):
        await invoice_agent(server.bundle(api="chat"), output_mode="native").run_async("Read it")


class Part(BaseModel):
    name: str
    parts: list[Part] = []


@pytest.mark.parametrize("profile", ["openai", "google", "anthropic", "deepseek", "plain"])
async def test_a_recursive_schema_works_with_every_provider(profile: str) -> None:
    data = {"name": "car", "parts": [{"name": "wheel", "parts": []}]}
    with OfflineServer(lambda _request: data, profile=profile) as server:
        agent = Agent("a", "x", model=server.bundle(), output_type=Part, output_dest="part")
        assert (await agent.run_async("Go"))["part"] == data


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_a_refusal_raises_the_sdks_error_immediately(api: str) -> None:
    with OfflineServer(lambda _request: Reply(refusal="I will not do that.")) as server:
        agent = invoice_agent(server.bundle(api=api))
        with pytest.raises(ModelRefusalError, match="I will not do that"):
            await agent.run_async("Read it")
        assert len(server.requests) == 1
        with pytest.raises(ModelRefusalError):
            async with agent.stream("Read it") as run:
                async for _ in run:
                    pass


@pytest.mark.parametrize("mode", ["native", "tool", "prompt"])
async def test_a_tool_call_instead_of_an_answer_is_a_separate_turn(mode: Any) -> None:
    with OfflineServer(lambda _request: ScriptedToolCall("look", {"word": "x"})) as server:
        agent = invoice_agent(server.bundle(), tools=[look], output_mode=mode)
        with pytest.raises(MaxTurnsExceeded):
            await agent.run_async("Read it", max_turns=3)
    assert len(server.requests) == 3


@pytest.mark.parametrize("mode", ["native", "tool", "prompt"])
async def test_an_answer_with_tool_calls_waits_for_them(mode: Any) -> None:
    calls = [ScriptedToolCall("look", {"word": "x"})]

    def reply(request: RecordedRequest) -> Any:
        if "found x" in json.dumps(request.body):
            return ScriptedToolCall("final_answer", DATA) if mode == "tool" else TEXT
        early = json.dumps({"number": "early", "items": []})
        if mode == "tool":
            return Reply(None, [ScriptedToolCall("final_answer", early), *calls])
        return Reply(early, calls)

    with OfflineServer(reply) as server:
        agent = invoice_agent(server.bundle(api="chat"), tools=[look], output_mode=mode)
        context = await agent.run_async("Read it")
    assert context["invoice"] == DATA
    assert len(server.requests) == 2
    # The early answer is a message in the conversation, not a call without a result.
    said = server.requests[1].body["messages"]
    assert [call["function"]["name"] for m in said for call in m.get("tool_calls") or ()] == ["look"]


async def test_of_two_calls_of_the_final_tool_the_last_counts() -> None:
    first = ScriptedToolCall("final_answer", {"number": "first", "items": []})
    with OfflineServer(lambda _request: [first, ScriptedToolCall("final_answer", DATA)]) as server:
        context = await invoice_agent(server.bundle(), output_mode="tool").run_async("Read it")
    assert context["invoice"] == DATA


async def test_a_reply_truncated_by_the_token_limit_is_an_error_with_its_text() -> None:
    cut = Reply(TEXT[:40], is_cut=True)
    with (
        OfflineServer(lambda _request: cut) as server,
        pytest.raises(StructuredOutputError, match="breaks off") as caught,
    ):
        await invoice_agent(server.bundle(api="chat")).run_async("Read it")
    assert caught.value.text == TEXT[:40]


async def test_an_empty_reply_does_not_use_up_the_turns() -> None:
    with (
        OfflineServer(lambda _request: "") as server,
        pytest.raises(StructuredOutputError, match="an empty reply"),
    ):
        await invoice_agent(server.bundle()).run_async("Read it")
    assert len(server.requests) < 6


async def test_ten_thousand_brackets_are_an_error_in_each_mode() -> None:
    for mode in ("native", "tool", "prompt"):
        deep = '{"number": ' + "[" * 10_000 + "]" * 10_000 + "}"
        reply = ScriptedToolCall("final_answer", deep) if mode == "tool" else deep
        with OfflineServer(
            [reply, ScriptedToolCall("final_answer", DATA) if mode == "tool" else TEXT]
        ) as server:
            agent = invoice_agent(server.bundle(), output_mode=mode)
            assert (await agent.run_async("Read it"))["invoice"] == DATA


async def test_the_final_tool_cannot_be_run() -> None:
    tool: Any = final_tool("final_answer", {"type": "object"})
    with pytest.raises(RuntimeError, match="cannot be run"):
        await tool.on_invoke_tool(None, "{}")
